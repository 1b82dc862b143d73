"""Results, attack by attack or at their strongest, with what did not run and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pandas as pd
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from leakboard.bench.scoring import FLAGS
from leakboard.leaderboards.tables import (
    NOTHING,
    PAPER,
    SETTING,
    Row,
    average,
    deciding,
    describe_setup,
    failures,
    format_parameters,
    skipped,
    standing,
    style_of,
    told,
    varying_names,
)
from leakboard.leaderboards.terminal.layout import titled

LEAK = ["attack", "attack_params", "goal", "channel", "view", "attribute"]
BELOW = (0, 0, 0, 2)
"""Room around what stands below the line of its setting."""


def summary_tables(frame: pd.DataFrame, everything: bool = False) -> list[RenderableType]:
    """For each task, model and cut a table: below each setting a row per attack and view.

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
        parts += [Text(line) for line in _audits(told, shown)]
        parts += [Text(line, style="yellow") for line in failures(here)]
        parts += [Text(f"skipped: {line}", style="dim") for line in skipped(here)]
    parts += _meanings(frame["flags"])
    if not everything and ((frame["channel"] == "") & (frame["status"] == "ok")).any():
        parts.append(Text("Attacks that read nothing stand at chance; --all shows them.", "dim"))
    return parts


def best_tables(frame: pd.DataFrame) -> list[RenderableType]:
    """For each task, model and cut a table: below each setting, with its utility, a row per goal and attribute.

    A row holds the EP that the attack of the defense's authors leaves, the EP that the strongest
    attack leaves, and which one that was; both are chosen as `leakboard.leaderboards.tables.deciding.deciding` says.
    What failed is a numbered note, with its reason; what nobody measured is named once.
    """
    shown, frame = _shown(frame), frame.sort_values("cut", kind="stable")
    parts: list[RenderableType] = []
    for (task, model, cut), here in frame.groupby(["task", "model", "cut"], sort=False):
        told, notes = here[here["goal"] != ""], dict[str, int]()
        if len(told):
            parts.append(_best(f"{task} · {model} · cut {cut}", told, shown, notes))
        parts += [Text(f"note {n}, {note}", style="dim") for note, n in notes.items()]
        parts += [Text(line, style="dim") for line in _unmeasured(told)]
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
    # Names may be wrapped on a narrow terminal, numbers may not.
    table.add_column("defense, strongest attack", overflow="fold")
    for name in ("paper", "strongest"):
        table.add_column(name, justify="right", no_wrap=True)
    floors = _add_levels(table, rows)
    broken = not rows["status"].isin(["ok", "skipped"]).all()
    if broken:
        table.add_column("note", overflow="fold")
    table.add_column("flag", no_wrap=True, min_width=4)
    for _, own in rows.groupby(SETTING, sort=False, dropna=False):
        first = average(own, SETTING).iloc[0].to_dict()
        setting = _setting(first, rows[rows["defense"] == first["defense"]], shown)
        table.add_row(_headed(setting, first))
        for _, same in own.groupby("goal", sort=False):
            found = average(deciding(same), [*SETTING, "goal", "attribute"])
            theirs = average(deciding(same, PAPER), [*SETTING, "goal", "attribute"])
            authors = {row["attribute"]: row for row in theirs.to_dict("records")}
            numbers = [notes.setdefault(text, len(notes) + 1) for text in _failed(same)]
            empty = [same.iloc[0].to_dict() | NOTHING] if numbers else []
            for row in found.sort_values("attribute").to_dict("records") or empty:
                # Without authors there is nothing but the strongest.
                known = style_of(row["defense"]).measured_by and row["attribute"] in authors
                params = format_parameters(row["attack_params"], shown.get(row["attack"], []))
                by = f"by {row['attack']} {params.replace(' = ', '=')}" if len(found) else ""
                aim = Text(f"{row['attribute'] or row['goal']} {by}".rstrip())
                words = [
                    _privacy(authors[row["attribute"]], interval=False) if known else _number(None),
                    _privacy(row),
                    *_levels(row, floors),
                    *([", ".join(map(str, sorted(numbers)))] if broken else []),
                    _numbered(row["flags"]),
                ]
                table.add_row(Padding(aim, BELOW), *map(Text, words))
    return table


def _audits(rows: pd.DataFrame, shown: Mapping[str, list[str]]) -> list[str]:
    """What is proven about ε, beside what could have been, means over seeds, a line per setting and attack."""
    proven, lines = rows[rows["epsilon"].notna()], []
    for _, same in proven.groupby([*SETTING, "attack", "attack_params"], sort=False, dropna=False):
        row = same.iloc[0].to_dict()
        setting = _setting(row, proven[proven["defense"] == row["defense"]], shown)
        attack = f"{row['attack']} {format_parameters(row['attack_params'], shown.get(row['attack'], []))}"
        bound, most = same["epsilon"].mean(), same["epsilon_ceiling"].mean()
        perfect = "" if pd.isna(most) else f"; a perfect attacker would prove {most:.2f}"
        lines.append(f"audit of {setting} by {attack.strip()}: ε ≥ {bound:.2f}{perfect}")
    return lines


def _headed(setting: str, row: Row) -> Text:
    """The line above what was found of a setting."""
    utility = f" · {row['utility_metric'] or 'utility'} {_with_half(row, 'utility')}"
    return Text(setting, style="bold") + Text(utility, style="not bold")


def _unmeasured(rows: pd.DataFrame) -> list[str]:
    """The goals for which no attack found anything to read."""
    tried = rows[~((rows["status"] == "ok") & (rows["channel"] == ""))]
    told = tried.groupby("goal", sort=False)["status"]
    goals = [str(goal) for goal, statuses in told if (statuses == "skipped").all()]
    return [f"not measured: {', '.join(goals)}; --attacks says why"] if goals else []


def _failed(rows: pd.DataFrame) -> list[str]:
    """Why attacks of one goal failed, those with the same reason together."""
    bad = rows[~rows["status"].isin(["ok", "skipped"])]
    lost = bad.groupby(["goal", "status", "reason"], sort=False)["attack"]
    return [
        f"{', '.join(attacks.unique())} ({goal}): {status}: {reason or 'no reason given'}"
        for (goal, status, reason), attacks in lost
    ]


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
    seeds = ", ".join(str(n) for n in sorted(means["n_seeds"].unique()))
    table = titled(f"{title} · seeds: {seeds}")
    table.add_column(
        "defense, attack", overflow="fold"
    )  # the one that gives way where it is narrow
    table.add_column("EP", justify="right", no_wrap=True)
    floors = _add_levels(table, means)
    if (means["flags"] != "").any():
        table.add_column("flag", no_wrap=True, min_width=4)
    views = means.drop_duplicates(["attack", "goal", "view", "channel"])
    several = set(views[views.duplicated(["attack", "goal", "view"])]["attack"])
    last = None
    for row in means.to_dict("records"):
        same = means[means["defense"] == row["defense"]]
        setting = _setting(row, same, shown)
        if setting != last:
            table.add_row(_headed(setting, row))
        found = _privacy(row) if row["status"] == "ok" else row["status"]
        words = [found, *_levels(row, floors), _numbered(row["flags"])]
        cells: list[RenderableType] = [
            Padding(_tried(row, shown, several), BELOW),
            *map(Text, words),
        ]
        style = "" if row["status"] == "ok" else "dim"
        table.add_row(*cells[: len(table.columns)], style=style)
        last = setting
    return table


def _add_levels(table: Table, rows: pd.DataFrame) -> bool:
    """Adds the columns of what guessing leaves, and of the untrained model where it leaves less somewhere."""
    table.add_column("chance", justify="right", no_wrap=True, min_width=len("chance"))
    floors = bool((rows["ep_level"] < rows["ep_chance"]).any())
    if floors:
        table.add_column("floor", justify="right", no_wrap=True)
    return floors


def _levels(row: Row, floors: bool) -> list[str]:
    """The entries of these columns."""
    below = row["ep_level"] < row["ep_chance"]
    floor = [_number(row["ep_level"]) if below else ""]
    return [_number(row["ep_chance"]), *(floor if floors else [])]


def _setting(row: Row, same: pd.DataFrame, shown: Mapping[str, list[str]]) -> str:
    own = format_parameters(row["params"], shown[row["defense"]])
    other = describe_setup(row, same)
    # Spaces around "=" would cost the width that the numbers need on 80 columns.
    return " ".join(part for part in (row["defense"], own, other) if part).replace(" = ", "=")


def _tried(row: Row, shown: Mapping[str, list[str]], several: Collection[str]) -> Text:
    """The attack, and what it was aimed at where that is not plain."""
    attack = str(row["attack"])
    params = format_parameters(row["attack_params"], shown.get(attack, []))
    # What was sent to train on is what matters first, and its worst moment; only another view is named.
    view = "" if row["view"] in ("train", "worst") else str(row["view"])
    channel = str(row["channel"]) if attack in several else ""
    what = [attack, params, str(row["attribute"]), channel, view]
    # Text, not str: a bracket in a name must not be read as markup.
    return Text(" ".join(part for part in what if part))


def _shown(frame: pd.DataFrame) -> dict[str, list[str]]:
    """For each method the parameters that vary within it."""
    found = {}
    for method, params in (("defense", "params"), ("attack", "attack_params")):
        for name, rows in frame[frame[method] != ""].groupby(method):
            found[str(name)] = varying_names(rows[params])
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
