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


def overview(rankings: Sequence[Ranking]) -> Iterator[Table | str]:
    """The first boards in one line each, those with a defense that helps before all others."""
    budget, unit = rankings[0].budget, rankings[0].unit
    ordered = sorted(rankings, key=lambda ranking: not ranking.within)
    rows: list[Sequence[Cell | str] | str] = []
    for ranking in ordered[:FIRST]:
        best = ranking.within[0] if ranking.within else None
        halving = [entry for entry in ranking.entries if entry.halving.setting]
        least = min(halving, key=lambda entry: entry.halving.value.value, default=None)
        rows.append(
            [
                ranking.words,
                f"{ranking.task} · {ranking.model}",
                "none" if best is None else best.setting.name,
                "–" if best is None else leakage_cell(best.leakage),
                "–" if best is None else format_interval(best.setting.cost, 1),
                "–"
                if least is None or least.halving.setting is None
                else f"{format_number(least.halving.value.value, 1)} ({least.halving.setting.name})",
            ]
        )
    yield Table(f"Best defense for at most {budget:g} {unit}", OVERVIEW, rows)
    yield f"{len(rows)} of {count(len(rankings), 'board')}. One of them: --goal and --task; all: --all"


def board_table(ranking: Ranking) -> Table:
    """The ranking, followed by defenses without a rank and baselines."""
    rows: list[Sequence[Cell | str] | str] = [_row(entry) for entry in ranking.within]
    if not ranking.within and (ranking.ineffective or ranking.over or ranking.unpriced):
        rows.append(
            f"no setting that costs at most {ranking.budget:g} {ranking.unit} clearly reduces leakage"
        )
    if ranking.ineffective:
        rows.append(
            f"costs at most {ranking.budget:g} {ranking.unit}, but does not clearly reduce leakage"
        )
        rows += [_row(entry) for entry in ranking.ineffective]
    if ranking.over:
        rows.append(f"costs more than {ranking.budget:g} {ranking.unit} at every measured setting")
        rows += [_row(entry) for entry in ranking.over]
    if ranking.baselines:
        rows.append("baselines")
        rows += [_baseline(result) for result in ranking.baselines]
    notes = _joint_lines("No rank", [(c.title, reason_without_cost(c)) for c in ranking.unpriced])
    notes += _joint_lines(
        "Not certified", [(c.title, c.results[0].reason) for c in ranking.uncertified]
    )
    measured = ranking.entries[0].setting.setting if ranking.entries else None
    about = f" · {measured.conditions}" if measured else ""
    title = f"{ranking.words} of {ranking.task} · {ranking.model}{about} · at most {ranking.budget:g} {ranking.unit}"
    return Table(title, in_unit(COLUMNS, ranking.unit), rows, notes)


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
    for table in paper_tables(found.table, found.by_folder, only):
        if paper.model not in (None, table.model):
            continue
        rows = table.frame()
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
        yield Table(f"{table.title}, and our measurements", columns, cells, [about, *table.notes])


def _row(entry: Entry) -> list[Cell | str]:
    row = entry.setting
    halving = entry.halving
    return [
        str(entry.rank or "–"),
        row.name,
        leakage_cell(entry.leakage),
        format_interval(row.cost, 1),
        "never" if halving.setting is None else format_number(halving.value.value, 1),
        entry.gives_away_words or "–",
        f"{success_words(row)}, undefended {format_number(row.twin_success.value)}, "
        f"{count(len(row.setting.seeds), 'seed')}",
    ]


def _baseline(row: Result) -> list[Cell | str]:
    name = "no protection" if row.setting.undefended else "untuned model"
    cost = "0.0" if row.defense == "none" else "–"
    leakage = leakage_cell(row.leakage)
    cells: list[Cell | str] = ["–", name, leakage, cost, "–", "–", success_words(row)]
    return [Cell(c, tone="muted") if isinstance(c, str) else c for c in cells]
