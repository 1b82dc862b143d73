"""Leaderboards: for each goal, task and model the defenses by their leakage within the budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leakboard.leaderboards.rendering import Cell, Column, Table, leakage_cell
from leakboard.leaderboards.tables import RecordSet, beside, shapes, worded
from leakboard.leaderboards.tables.intervals import count, format_interval, format_number
from leakboard.leaderboards.tables.rankings import Entry, Ranking, reason_without_cost
from leakboard.leaderboards.tables.results import Result

COLUMNS = (
    Column("rank", align="right", help="Those that share a rank do not clearly differ"),
    Column("defense"),
    Column(
        "leakage",
        align="right",
        help="Of what is read without the defense, the share that still is",
    ),
    Column("points lost", align="right", help="Of utility, against no protection"),
    Column(
        "halving costs",
        align="right",
        help="The least cost of a measured setting that leaks at most half",
    ),
    Column("also gives away", optional=True, help="Leakage of other goals at the same setting"),
    Column("strongest attack", optional=True),
)
ABOUT = (
    "Leakage: of what attacks read without the defense, the share that they still read, with its 95 % interval. "
    "Defenses share a rank where none leaks clearly less (paired over seeds, Holm's correction)."
)
"""What all boards mean by their numbers."""
REPEATED = ("task", "defense", "seeds", "flags", "matched on", "where")
"""Columns of the papers' tables that stand in the note where all rows say the same."""


def board_table(ranking: Ranking) -> Table:
    """The ranking with the baselines, what costs more, and what has no rank below it."""
    one = ranking
    rows: list[Sequence[Cell | str] | str] = [_row(entry) for entry in one.within]
    if not one.within and (one.over or one.unpriced):
        rows.append(f"no defense has a setting that costs at most {one.budget:g} points")
    if one.over:
        rows.append(f"costs more than {one.budget:g} points at every measured setting")
        rows += [_row(entry) for entry in one.over]
    if one.baselines:
        rows.append("baselines")
        rows += [_baseline(result) for result in one.baselines]
    notes = _together("No rank", [(c.title, reason_without_cost(c)) for c in one.unpriced])
    notes += _together("Not certified", [(c.title, c.results[0].reason) for c in one.uncertified])
    measured = next((entry.setting.setting for entry in [*one.within, *one.over]), None)
    about = f" · {measured.conditions}" if measured else ""
    title = f"{one.words} of {one.task} · {one.model}{about} · at most {one.budget:g} points"
    return Table(title, COLUMNS, rows, notes)


def _together(what: str, reasons: Sequence[tuple[str, str]]) -> list[str]:
    """A sentence for each reason, with all defenses of which it is true."""
    found: dict[str, list[str]] = {}
    for name, reason in reasons:
        found.setdefault(reason, []).append(name)
    return [f"{what}: {', '.join(names)}; {reason}." for reason, names in found.items()]


def paper_tables(found: RecordSet) -> Iterator[Table]:
    """What the paper that a suite mirrors prints, and what was measured at the same settings."""
    paper = found.suite.paper if found.suite else None
    if paper is None:
        return
    for artefact in paper.artefact:
        for laid in beside(paper.paper, artefact, found.frame(), found.records, found.by_folder):
            title = f"{laid.title} and our measurements"
            if laid.measured.empty:
                yield Table(title, [Column("result")], [["no printed setting was measured"]])
                continue
            rows = worded(laid)
            alike = [name for name in REPEATED if name in rows and rows[name].nunique() == 1]
            same = [f"{name} {rows[name].iloc[0]}" for name in alike if rows[name].iloc[0]]
            shown = rows.drop(columns=alike)
            notes = [
                "Both by the paper's own attacks; the models differ, so the numbers need not agree.",
                *laid.notes,
                *([f"In all rows: {'; '.join(same)}."] if same else []),
                *map(str, shapes(laid)),
            ]
            columns = [Column(str(name)) for name in shown.columns]
            yield Table(title, columns, shown.astype(str).to_numpy().tolist(), notes)


def _row(entry: Entry) -> list[Cell | str]:
    one = entry.setting
    halving = entry.halving
    return [
        str(entry.rank or "–"),
        one.name,
        leakage_cell(entry.leakage),
        format_interval(one.cost, 1),
        "never" if halving.setting is None else format_number(halving.value.value, 1),
        entry.gives_away_words or "–",
        f"{one.attack}: {one.metric} {format_number(one.success.value)}, undefended "
        f"{format_number(one.twin_success.value)}, guessing {format_number(one.baseline)}, "
        f"{count(len(one.setting.seeds), 'seed')}",
    ]


def _baseline(one: Result) -> list[Cell | str]:
    name = "no protection" if one.setting.undefended else "untuned model"
    cost = "0.0" if one.defense == "none" else "–"
    read = f"{one.attack}: {one.metric} {format_number(one.success.value)}, guessing {format_number(one.baseline)}"
    cells: list[Cell | str] = ["–", name, leakage_cell(one.leakage), cost, "–", "–", read]
    return [Cell(c, tone="muted") if isinstance(c, str) else c for c in cells]
