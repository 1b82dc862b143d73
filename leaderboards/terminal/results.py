"""Results of single runs: settings and goals, or all attacks, with failures and skipped methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from leakboard.bench.contracts import grouped
from leakboard.bench.records import failures, skipped
from leakboard.bench.scoring import FLAGS
from leakboard.leaderboards.rendering import Cell, Table, columns, leakage_cell
from leakboard.leaderboards.tables import (
    GOAL_WORDS,
    Interval,
    Result,
    ResultsTable,
    Setting,
    count,
    format_goal,
    format_interval,
    format_number,
    format_parameters,
    mean_interval,
    varying_names,
)
from leakboard.leaderboards.terminal.layout import FIRST, best_first, success_words

LEAK = [
    "attack",
    "attack_params",
    "goal",
    "channel",
    "view",
    "attribute",
    "metric",
    "status",
    "reason",
]
"""Columns that rows of one attack share over seeds."""
BEST = columns("goal", ">leakage", ">success", ">undefended", ">baseline", "?attack")
EVERY = columns("attack", ">success", ">baseline", "?metric", "?flags")
DIGEST = columns("goal", "setting", ">leakage", ">points lost", "?strongest attack")
UTILITIES = columns("setting", ">utility", ">seeds", "?measure")
FEW = 3
"""Number of failures without `--all`."""


def digest_parts(table: ResultsTable, frame: pd.DataFrame) -> Iterator[Table | str]:
    """The ten results that matter most and the number of the others; all results if there are no more.

    For each goal and task for which a defense is made, they are no protection, and the settings that leak least.
    Records without attacks, such as trials, are shown by their utility.
    """
    if not len(table):
        yield from _utilities_parts(table, frame)
        return
    if len(table) <= FIRST:
        yield from results_tables(table, frame)
        return
    shown = _first_results(table)
    tasks = len({row.setting.task for row in table}) > 1
    rows: list[Sequence[Cell | str] | str] = [
        [
            GOAL_WORDS[row.goal] + (f" of {row.setting.task}" if tasks else ""),
            "No protection" if row.defense == "none" else row.name,
            leakage_cell(row.leakage),
            _cost(row),
            success_words(row),
        ]
        for row in shown
    ]
    notes = dict.fromkeys(f"In brackets: {why}." for row in shown if (why := _why_not(row)))
    yield Table("No protection, and the settings that leak least", DIGEST, rows, list(notes))
    bad = list(failures(frame))
    yield from bad[:FEW]
    more = f" and {count(len(bad) - FEW, 'more failure')}" if len(bad) > FEW else ""
    yield (
        f"{len(table) - len(shown)} more results{more} with --all; every attack with --attacks; ranked within a budget: "
        "leakboard board"
    )


def _first_results(table: ResultsTable) -> list[Result]:
    """For each goal and task, no protection and the settings that leak least, an equal number of each.

    Defenses that are made for the goal count; if no goal has one, all do.
    """
    has_made = any(row.is_made_for_goal for row in table)
    counted = [
        row
        for row in sorted(table, key=_first_to_last)
        if row.is_made_for_goal or not has_made or row.defense == "none"
    ]
    questions = grouped(counted, lambda row: (row.goal, row.setting.task)).values()
    answers = [own for own in questions if not has_made or any(r.is_made_for_goal for r in own)]
    share = max(FIRST // max(len(answers), 1), 2)
    return [row for rows in answers for row in rows[:share]][:FIRST]


def _first_to_last(row: Result) -> tuple[object, ...]:
    """Order by goal; then no protection, certified settings by leakage, and all others."""
    place = list(GOAL_WORDS).index(row.goal)
    return place, row.defense != "none", not row.is_certified, row.leakage.value


def _utilities_parts(
    table: ResultsTable, frame: pd.DataFrame, everything: bool = False
) -> Iterator[Table | str]:
    """Settings by utility, the best of each defense before all others."""
    settings = sorted(table.settings, key=lambda one: (one.utility.is_missing, -one.utility.value))
    ordered = best_first(settings, lambda one: one.defense)
    shown = ordered if everything else ordered[:FIRST]
    rows: list[Sequence[Cell | str] | str] = [
        [
            setting.name,
            format_interval(setting.utility),
            str(len(setting.seeds)),
            f"{setting.metric} on {setting.task}",
        ]
        for setting in shown
    ]
    if rows:
        yield Table("Settings by utility; no attack ran", UTILITIES, rows)
    yield from failures(frame)
    if len(ordered) > len(shown):
        yield f"{len(ordered) - len(shown)} more settings with --all"


def results_tables(table: ResultsTable, frame: pd.DataFrame) -> Iterator[Table | str]:
    """A table for each task, model and cut, with settings as headings and a row per goal.

    Args:
        frame: frame of the same records, for failures and skipped methods.
    """
    if not len(table):
        yield from _utilities_parts(table, frame, everything=True)
        return
    results = grouped(table, lambda row: id(row.setting))
    for (task, model, cut), own in _by_place(table).items():
        rows: list[Sequence[Cell | str] | str] = []
        for setting in own:
            found = results.get(id(setting), [])
            rows.append(_heading(setting, found[0] if found else None))
            rows += [_best(row) for row in found] or [["–", "nothing was read", *["–"] * 4]]
        yield Table(f"{task} · {model} · cut {cut}", BEST, rows)
    yield from _not_run(frame[frame["goal"] == ""])


def attacks_tables(
    table: ResultsTable, frame: pd.DataFrame, everything: bool = False
) -> Iterator[Table | str]:
    """A table for each task, model and cut, with settings as headings and a row of means per attack and view.

    Failures, skipped methods and the meaning of flags follow.

    Args:
        frame: `RecordSet.frame`, or a part of it.
        everything: include attacks that read nothing, which are at the chance level.
    """
    silent = (frame["channel"] == "") & (frame["status"] == "ok")
    shown = frame if everything else frame[~silent]
    shown = shown[(shown["status"] != "skipped") & (shown["attack"] != "")]
    params = {
        str(name): varying_names(rows["attack_params"]) for name, rows in shown.groupby("attack")
    }
    by_key = dict(iter(shown.groupby("key", sort=False)))
    for (task, model, cut), own in _by_place(table).items():
        rows: list[Sequence[Cell | str] | str] = []
        audits: list[str] = []
        for setting in own:
            found = [by_key[key] for key in setting.keys if key in by_key]
            if not found:
                continue
            rows.append(_heading(setting, None))
            several = pd.concat(found)
            rows += _attacks(several, params)
            audits += _audits(setting, several, params)
        if rows:
            yield Table(f"{task} · {model} · cut {cut}", EVERY, rows, audits)
    yield from _not_run(frame)
    raised = {flag for text in shown["flags"] for flag in text.split(",")}
    for number, (flag, meaning) in enumerate(FLAGS.items(), start=1):
        if flag in raised:
            yield f"flag {number}, {flag}: {meaning}"
    if not everything and silent.any():
        yield "Attacks that read nothing are at chance; --all shows them."


def _by_place(table: ResultsTable) -> dict[tuple[str, str, int], list[Setting]]:
    """Settings by task, model and cut, the smallest cuts first."""
    settings = sorted(table.settings, key=lambda one: one.cut)
    return grouped(settings, lambda one: (one.task, one.model, one.cut))


def _heading(setting: Setting, result: Result | None) -> str:
    words = [setting.name]
    if not setting.utility.is_missing:
        words.append(f"{setting.metric} {format_interval(setting.utility)}")
    if result is not None and result.has_cost and not setting.undefended:
        why = _why_not(result)
        words.append(
            f"{format_interval(result.cost, 1)} {setting.unit} lost" + f" ({why})" * bool(why)
        )
    words.append(f"seeds {', '.join(map(str, setting.seeds))}")
    return " · ".join(words)


def _cost(row: Result) -> str:
    """The cost, in brackets if it must not be compared."""
    cost = format_interval(row.cost, 1) if row.has_cost else "–"
    return f"({cost})" if _why_not(row) else cost


def _why_not(row: Result) -> str:
    """Why the cost of a row must not be compared, or an empty string."""
    counts = row.is_baseline or not row.has_cost or not row.reason_without_cost
    return "" if counts else f"not comparable: {row.reason_without_cost}"


def _best(row: Result) -> list[Cell | str]:
    return [
        format_goal(row.goal, row.attribute),
        leakage_cell(row.leakage),
        format_interval(row.success),
        format_number(row.twin_success.value),
        format_number(row.baseline),
        f"{row.attack_title} ({row.metric})",
    ]


def _attacks(rows: pd.DataFrame, params: Mapping[str, Sequence[str]]) -> list[list[Cell | str]]:
    """A row for each attack, channel, view and reason."""
    found: list[list[Cell | str]] = []
    views = rows.drop_duplicates(["attack", "goal", "view", "channel"])
    several = set(views[views.duplicated(["attack", "goal", "view"])]["attack"])
    for _, own in rows.groupby(LEAK, sort=False, dropna=False):
        row = own.iloc[0]
        attack = str(row["attack"])
        # The usual views, training data and the worst moment, are not named.
        view = "" if row["view"] in ("train", "worst") else str(row["view"])
        channel = str(row["channel"]) if attack in several else ""
        words = [
            attack,
            format_parameters(str(row["attack_params"]), params.get(attack, [])),
            "on "
            + " ".join(filter(None, [GOAL_WORDS.get(row["goal"], ""), str(row["attribute"])])),
            channel,
            view,
        ]
        text = " ".join(filter(None, words))
        if row["status"] != "ok":
            found.append([Cell(text, muted=True), str(row["status"]), "–", "–", "–"])
            continue
        guess = float(own[["chance", "floor"]].astype(float).max(axis=1).mean())
        known = own["success"].dropna().astype(float).tolist()
        flags = {flag for text in own["flags"] for flag in str(text).split(",") if flag}
        numbers = [str(n) for n, flag in enumerate(FLAGS, start=1) if flag in flags]
        found.append(
            [
                text,
                format_interval(mean_interval(known, Interval.of_row(row, "success"))),
                format_number(guess),
                str(row["metric"]),
                ", ".join(numbers) or "–",
            ]
        )
    return found


def _audits(
    setting: Setting, rows: pd.DataFrame, params: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """A line per attack with the means over seeds of the proven and of the provable ε."""
    proven = rows[rows["epsilon"].notna()]
    for _, own in proven.groupby(["attack", "attack_params"], sort=False):
        row = own.iloc[0]
        attack = f"{row['attack']} {format_parameters(str(row['attack_params']), params.get(row['attack'], []))}"
        most = own["epsilon_ceiling"].mean()
        perfect = "" if pd.isna(most) else f"; a perfect attacker would prove {most:.2f}"
        yield (
            f"audit of {setting.name} by {attack.strip()}: ε ≥ {own['epsilon'].mean():.2f}{perfect}"
        )


def _not_run(frame: pd.DataFrame) -> Iterator[str]:
    yield from failures(frame)
    yield from (f"skipped: {line}" for line in skipped(frame))
