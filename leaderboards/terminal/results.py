"""Results, attack by attack or at their strongest, with what did not run and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

import pandas as pd
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bench.scoring import FLAGS
from leaderboards.tables import (
    NOTHING,
    PAPER,
    SETTING,
    Row,
    average,
    deciding,
    distinct,
    failures,
    levels,
    look,
    settings,
    setup,
    skipped,
    standing,
    told,
    varying,
)
from leaderboards.terminal.layout import titled

LEAK = ["attack", "attack_params", "goal", "channel", "view", "attribute"]


def summary_tables(frame: pd.DataFrame, everything: bool = False) -> list[RenderableType]:
    """For each task, model and cut a table with one row per setting, attack and view.

    Numbers are means over seeds; utility and EP carry their 95 % interval, and beside EP stands
    what an attacker who only guesses would leave. Parameters are shown
    where they vary within their method. What failed or was skipped stands below with its reason,
    and what the numbers of the flags mean.

    Args:
        everything: also the rows of attacks that read nothing, which stand at the chance level.
    """
    shown, frame = _shown(frame), frame.sort_values("cut", kind="stable")
    parts: list[RenderableType] = []
    for (task, model, cut), here in frame.groupby(["task", "model", "cut"], sort=False):
        told = here[here["status"] != "skipped"]
        if not everything:
            told = told[(told["channel"] != "") | (told["status"] != "ok")]
        if len(told):
            parts.append(_table(f"{task} · {model} · cut {cut}", told, shown))
        parts += [Text(line, style="yellow") for line in failures(here)]
        parts += [Text(f"skipped: {line}", style="dim") for line in skipped(here)]
    parts += _meanings(frame["flags"])
    if not everything and ((frame["channel"] == "") & (frame["status"] == "ok")).any():
        parts.append(Text("Attacks that read nothing stand at chance; --all shows them.", "dim"))
    return parts


def best_tables(frame: pd.DataFrame) -> list[RenderableType]:
    """For each task, model and cut a table with one row per setting, goal and attribute.

    A row holds the EP that the attack of the defense's authors leaves, the EP that the strongest
    attack leaves, and which one that was; both are chosen as `leaderboards.tables.deciding.deciding` says.
    What did not apply or failed is a numbered note, with its reason.
    """
    shown, frame = _shown(frame), frame.sort_values("cut", kind="stable")
    parts: list[RenderableType] = []
    for (task, model, cut), here in frame.groupby(["task", "model", "cut"], sort=False):
        told, notes = here[here["goal"] != ""], dict[str, int]()
        if len(told):
            parts.append(_best(f"{task} · {model} · cut {cut}", told, shown, notes))
        parts += [Text(f"note {n}, {note}", style="dim") for note, n in notes.items()]
        cells = here[here["goal"] == ""]
        parts += [Text(line, style="yellow") for line in failures(cells)]
        parts += [Text(f"skipped: {line}", style="dim") for line in skipped(cells)]
    return parts + _meanings(deciding(frame)["flags"])


def _best(
    title: str, rows: pd.DataFrame, shown: Mapping[str, list[str]], notes: dict[str, int]
) -> Table:
    """The table; texts of notes are added to `notes`, with their numbers."""
    title = f"{title} · EP by the paper's attack and by the strongest"
    table = titled(title)
    for name in ("defense", "goal", "paper", "strongest", "by", "chance", "note", "flag"):
        justify: Literal["left", "right"] = "right" if name in ("paper", "chance") else "left"
        # Names may be folded on a narrow terminal, numbers may not.
        whole = name not in ("defense", "by")
        table.add_column(name, justify=justify, no_wrap=whole, overflow="fold")
    by = [*SETTING, "goal"]
    last = None
    for _, same in rows.groupby(by, sort=False, dropna=False):
        means = average(deciding(same), [*by, "attribute"]).sort_values("attribute")
        found = means.to_dict("records")
        theirs = average(deciding(same, PAPER), [*by, "attribute"])
        authors = {row["attribute"]: row for row in theirs.to_dict("records")}
        first = same.iloc[0].to_dict()
        peers = rows[rows["defense"] == first["defense"]]
        setting = _setting(first, peers, shown)
        idle = [
            f"{row['attack']} ({row['goal']}): {row['status']}: {row['reason'] or 'no reason given'}"
            for row in same[same["status"] != "ok"].to_dict("records")
        ]
        numbers = [notes.setdefault(text, len(notes) + 1) for text in dict.fromkeys(idle)]
        # A baseline is no attack: where nothing else ran, the row stays empty.
        for row in found or [first | NOTHING]:
            # Without authors there is nothing but the strongest.
            known = look(row["defense"]).measured_by and row["attribute"] in authors
            params = settings(row["attack_params"], shown.get(row["attack"], []))
            words = [
                setting if setting != last else "",
                row["attribute"] or row["goal"],
                _privacy(authors[row["attribute"]], interval=False) if known else _number(None),
                _privacy(row),
                " ".join(part for part in (row["attack"], params.replace(" = ", "=")) if part),
                levels(row),
                ",".join(map(str, numbers)),
                _numbered(row["flags"]),
            ]
            table.add_row(*map(Text, words))
            last = setting
    return table


def _meanings(flags: pd.Series) -> list[RenderableType]:
    """What the numbers of the flags mean that occur in a column."""
    raised = {flag for text in flags for flag in text.split(",")}
    return [
        Text(f"flag {number}, {flag}: {meaning}", style="yellow")
        for number, (flag, meaning) in enumerate(FLAGS.items(), start=1)
        if flag in raised
    ]


def _table(title: str, rows: pd.DataFrame, shown: Mapping[str, list[str]]) -> Table:
    # A reason belongs to one seed; joined with a success of another it would say nothing true.
    means = average(rows, [*SETTING, *LEAK, "status", "reason"])
    metric = distinct(means["utility_metric"])
    seeds = ", ".join(str(n) for n in sorted(means["n_seeds"].unique()))
    table = titled(f"{title} · seeds: {seeds}")
    # The words of a metric stand one above the other, since its numbers are short.
    for name in ("defense", (metric or "utility").replace(" ", "\n")):
        table.add_column(name, no_wrap=True)
    table.add_column("attack", overflow="fold")  # the one that gives way where it is narrow
    for name in ("EP", "chance"):
        table.add_column(name, justify="right", no_wrap=True, min_width=len(name))
    if (means["flags"] != "").any():
        table.add_column("flag", no_wrap=True, min_width=4)
    views = means.drop_duplicates(["attack", "goal", "view", "channel"])
    several = set(views[views.duplicated(["attack", "goal", "view"])]["attack"])
    last = None
    for row in means.to_dict("records"):
        same = means[means["defense"] == row["defense"]]
        setting = _setting(row, same, shown)
        table.add_row(
            *_cells(row, setting if setting != last else "", shown, several)[: len(table.columns)],
            style="" if row["status"] == "ok" else "dim",
        )
        last = setting
    return table


def _setting(row: Row, same: pd.DataFrame, shown: Mapping[str, list[str]]) -> str:
    own = settings(row["params"], shown[row["defense"]])
    other = setup(row, same)
    # Spaces around "=" would cost the width that the numbers need on 80 columns.
    return " ".join(part for part in (row["defense"], own, other) if part).replace(" = ", "=")


def _cells(
    row: Row, setting: str, shown: Mapping[str, list[str]], several: Collection[str]
) -> list[Text]:
    attack = str(row["attack"])
    params = settings(row["attack_params"], shown.get(attack, []))
    # What was sent to train on is what matters first, and its worst moment; only another view is named.
    view = "" if row["view"] in ("train", "worst") else str(row["view"])
    channel = str(row["channel"]) if attack in several else ""
    what = [attack, params, str(row["attribute"]), channel, view]
    words = [
        setting,
        _with_half(row, "utility") if setting else "",
        " ".join(part for part in what if part),
        _privacy(row) if row["status"] == "ok" else row["status"],
        levels(row),
        _numbered(row["flags"]),
    ]
    # Text, not str: a bracket in a reason must not be read as markup.
    return [Text(word) for word in words]


def _shown(frame: pd.DataFrame) -> dict[str, list[str]]:
    """For each method the parameters that vary within it."""
    found = {}
    for method, params in (("defense", "params"), ("attack", "attack_params")):
        for name, rows in frame[frame[method] != ""].groupby(method):
            found[str(name)] = varying(rows[params])
    return found


def _numbered(flags: str) -> str:
    return ",".join(str(list(FLAGS).index(flag) + 1) for flag in flags.split(",") if flag)


def _number(value: Any) -> str:
    return "–" if pd.isna(value) else f"{value:.3f}"


def _privacy(row: Row, interval: bool = True) -> str:
    """EP in words, where anything is said of it."""
    number = _with_interval(row, "ep") if interval else _number(row["ep"])
    return number if pd.isna(row["ep"]) else told(number, standing(row))


def _with_half(row: Row, name: str) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if pd.isna(low) or pd.isna(high):
        return _number(row[name])
    return f"{_number(row[name])} ±{(high - low) / 2:.2f}"


def _with_interval(row: Row, name: str) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if pd.isna(low) or pd.isna(high):
        return _number(row[name])
    # Without their leading zeros the ends leave room for the rest on 80 columns.
    ends = ", ".join(_number(end).removeprefix("0") for end in (low, high))
    return f"{_number(row[name])} [{ends}]"
