"""Leaderboards: for each goal, task and model the defenses by their leakage within the budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from leakboard.leaderboards.rendering import (
    LEAKAGE_COLUMN,
    Cell,
    Column,
    Table,
    in_unit,
    leakage_cell,
)
from leakboard.leaderboards.tables import (
    Entry,
    Ranking,
    RecordSet,
    Result,
    count,
    format_interval,
    format_number,
    paper_tables,
    reason_without_cost,
)
from leakboard.leaderboards.terminal.layout import FIRST, success_words

COLUMNS = (
    Column("rank", align="right", help="Defenses that share a rank do not clearly differ"),
    Column("defense"),
    replace(LEAKAGE_COLUMN, align="right"),
    Column("points lost", align="right", help="Points of utility lost against no protection"),
    Column(
        "halving costs",
        align="right",
        help="Smallest cost of a measured setting that leaks at most half",
    ),
    Column("also gives away", optional=True, help="Leakage of other goals at the same setting"),
    Column("strongest attack", optional=True),
)
OVERVIEW = (
    Column("hides"),
    Column("task"),
    Column("best defense"),
    Column("leakage", align="right"),
    Column("points lost", align="right"),
    Column("halving costs", optional=True),
)
ABOUT = (
    "Leakage is the share of what attacks read without the defense that they still read with it, with its 95 % "
    "interval. Defenses share a rank if none leaks clearly less (paired over seeds, Holm's correction)."
)
"""Explanation of the numbers of boards."""
WORDS = ("task", "defense", "setting", "measured on")
"""Columns without numbers of the papers' tables."""


def overview(found: Sequence[Ranking]) -> Iterator[Table | str]:
    """The first boards in one line each, those with a defense that helps before all others."""
    budget, unit = found[0].budget, found[0].unit
    ordered = sorted(found, key=lambda one: not one.within)
    rows: list[Sequence[Cell | str] | str] = []
    for one in ordered[:FIRST]:
        best = one.within[0] if one.within else None
        halving = [e for e in [*one.within, *one.ineffective, *one.over] if e.halving.setting]
        least = min(halving, key=lambda entry: entry.halving.value.value, default=None)
        rows.append(
            [
                one.words,
                f"{one.task} · {one.model}",
                "none" if best is None else best.setting.name,
                "–" if best is None else leakage_cell(best.leakage),
                "–" if best is None else format_interval(best.setting.cost, 1),
                "–"
                if least is None or least.halving.setting is None
                else f"{format_number(least.halving.value.value, 1)} ({least.halving.setting.name})",
            ]
        )
    yield Table(f"Best defense for at most {budget:g} {unit}", OVERVIEW, rows)
    yield f"{len(rows)} of {count(len(found), 'board')}. One of them: --goal and --task; all: --all"


def board_table(ranking: Ranking) -> Table:
    """The ranking, followed by defenses without a rank and baselines."""
    one = ranking
    rows: list[Sequence[Cell | str] | str] = [_row(entry) for entry in one.within]
    if not one.within and (one.ineffective or one.over or one.unpriced):
        rows.append(
            f"no setting that costs at most {one.budget:g} {one.unit} clearly reduces leakage"
        )
    if one.ineffective:
        rows.append(f"costs at most {one.budget:g} {one.unit}, but does not clearly reduce leakage")
        rows += [_row(entry) for entry in one.ineffective]
    if one.over:
        rows.append(f"costs more than {one.budget:g} {one.unit} at every measured setting")
        rows += [_row(entry) for entry in one.over]
    if one.baselines:
        rows.append("baselines")
        rows += [_baseline(result) for result in one.baselines]
    notes = _joint_lines("No rank", [(c.title, reason_without_cost(c)) for c in one.unpriced])
    notes += _joint_lines(
        "Not certified", [(c.title, c.results[0].reason) for c in one.uncertified]
    )
    measured = next(
        (entry.setting.setting for entry in [*one.within, *one.ineffective, *one.over]), None
    )
    about = f" · {measured.conditions}" if measured else ""
    title = f"{one.words} of {one.task} · {one.model}{about} · at most {one.budget:g} {one.unit}"
    return Table(title, in_unit(COLUMNS, one.unit), rows, notes)


def _joint_lines(what: str, reasons: Sequence[tuple[str, str]]) -> list[str]:
    """A sentence for each reason, with all defenses of which it is true."""
    found: dict[str, list[str]] = {}
    for name, reason in reasons:
        found.setdefault(reason, []).append(name)
    return [f"{what}: {', '.join(names)}; {reason}." for reason, names in found.items()]


def papers_tables(found: RecordSet) -> Iterator[Table]:
    """What the paper that a suite mirrors prints, and what was measured at the same settings."""
    paper = found.suite.paper if found.suite else None
    if paper is None:
        return
    only = [(paper.paper, artefact) for artefact in paper.artefact]
    for one in paper_tables(found.table, found.by_folder, only):
        if paper.model not in (None, one.model):
            continue
        rows = one.frame()
        columns = [
            Column(
                name,
                "left" if name in WORDS else "right",
                optional=name == "measured on" or name.endswith("difference"),
            )
            for name in map(str, rows.columns)
        ]
        about = "Both by the paper's own attacks; the models differ, so the numbers need not agree."
        cells = rows.astype(str).to_numpy().tolist()
        yield Table(f"{one.title}, and our measurements", columns, cells, [about, *one.notes])


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
        f"{success_words(one)}, undefended {format_number(one.twin_success.value)}, "
        f"{count(len(one.setting.seeds), 'seed')}",
    ]


def _baseline(one: Result) -> list[Cell | str]:
    name = "no protection" if one.setting.undefended else "untuned model"
    cost = "0.0" if one.defense == "none" else "–"
    leakage = leakage_cell(one.leakage)
    cells: list[Cell | str] = ["–", name, leakage, cost, "–", "–", success_words(one)]
    return [Cell(c, tone="muted") if isinstance(c, str) else c for c in cells]
