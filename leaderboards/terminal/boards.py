"""Leaderboards: for each goal, task and model the defenses by their leakage within the budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leakboard.bench.contracts import grouped
from leakboard.leaderboards.rendering import Cell, Column, Table, columns, in_unit, leakage_cell
from leakboard.leaderboards.tables import (
    LEAKAGE_WORDS,
    Entry,
    Ranking,
    RecordSet,
    Result,
    count,
    format_interval,
    format_number,
    paper_tables,
)
from leakboard.leaderboards.terminal.layout import FIRST, success_words

COLUMNS = columns(
    ">rank",
    "defense",
    ">leakage",
    ">points lost",
    ">halving costs",
    "?also gives away",
    "?strongest attack",
)
OVERVIEW = columns("hides", "task", "best defense", ">leakage", ">points lost", "?halving costs")
ABOUT = (
    f"{LEAKAGE_WORDS.removesuffix('.')}, with its 95 % interval. Defenses share a rank if none leaks clearly less "
    "(paired over seeds, Holm's correction)."
)
"""Explanation of the numbers of boards."""
WORDS = ("task", "defense", "setting", "measured on")
"""Columns without numbers of the papers' tables."""


def overview(rankings: Sequence[Ranking]) -> Iterator[Table | str]:
    """The first boards in one line each, those with a defense that helps before all others."""
    budget, unit = rankings[0].budget, rankings[0].unit
    ordered = sorted(rankings, key=lambda ranking: not ranking.within)
    rows = []
    for ranking in ordered[:FIRST]:
        best: list[Cell | str] = ["–", "–", "–"]
        if ranking.within:
            first, one = ranking.within[0], ranking.within[0].setting
            best = [one.name, leakage_cell(first.leakage), format_interval(one.cost, 1)]
        half, cost = ranking.halving.setting, format_number(ranking.halving.value.value, 1)
        cheapest = "–"
        if half is not None:
            cheapest = f"{cost} of {format_number(half.gain.value, 1)} gained ({half.name})"
            cheapest += "" if half.still_learns else ", hardly learns"
        rows.append([ranking.words, f"{ranking.task} · {ranking.model}", *best, cheapest])
    yield Table(f"Best defense for at most {budget:g} {unit}", OVERVIEW, rows)
    yield f"{len(rows)} of {count(len(rankings), 'board')}. One of them: --goal and --task; all: --all"


def board_table(ranking: Ranking) -> Table:
    """The ranking, followed by defenses without a rank and baselines."""
    limit = f"{ranking.budget:g} {ranking.unit}"
    rows: list[Sequence[Cell | str] | str] = [_row(entry) for entry in ranking.within]
    if not ranking.within and (ranking.ineffective or ranking.over or ranking.unpriced):
        rows.append(f"no setting that costs at most {limit} clearly reduces leakage")
    for words, entries in (
        (f"costs at most {limit}, but does not clearly reduce leakage", ranking.ineffective),
        (
            f"costs more than {limit}, or nearly all gain, at every measured setting",
            ranking.over,
        ),
    ):
        if entries:
            rows += [words, *map(_row, entries)]
    if ranking.baselines:
        rows += ["baselines", *map(_baseline, ranking.baselines)]
    notes = _joint_lines("No rank", [(c.title, c.reason_without_rank) for c in ranking.unpriced])
    notes += _joint_lines(
        "Not certified", [(c.title, c.results[0].reason) for c in ranking.uncertified]
    )
    noted = [(entry.setting.name, entry.note) for entry in ranking.entries if entry.note]
    notes += _joint_lines("Not cross-fitted", noted)
    measured = {entry.setting.setting.conditions for entry in ranking.entries}
    about = (
        f" · {measured.pop() if len(measured) == 1 else 'different trainings'}" if measured else ""
    )
    title = f"{ranking.words} of {ranking.task} · {ranking.model}{about} · at most {limit}"
    return Table(title, in_unit(COLUMNS, ranking.unit), rows, notes)


def _joint_lines(what: str, reasons: Sequence[tuple[str, str]]) -> list[str]:
    """A sentence for each reason, with all defenses of which it is true."""
    found = grouped(reasons, lambda one: one[1])
    return [f"{what}: {', '.join(n for n, _ in own)}; {reason}." for reason, own in found.items()]


def papers_tables(found: RecordSet) -> Iterator[Table]:
    """What the paper that a suite mirrors prints, and what was measured at the same settings."""
    paper = found.suite.paper if found.suite else None
    if paper is None:
        return
    only = [(paper.paper, artefact) for artefact in paper.artefact]
    for table in paper_tables(found.table, found.by_folder, only):
        if paper.model not in (None, table.model):
            continue
        rows = table.frame
        heads = [
            Column(
                name,
                "left" if name in WORDS else "right",
                optional=name == "measured on" or name.endswith("difference"),
            )
            for name in map(str, rows.columns)
        ]
        about = "Both by the paper's own attacks; the models differ, so the numbers need not agree."
        cells = rows.astype(str).to_numpy().tolist()
        yield Table(f"{table.title}, and our measurements", heads, cells, [about, *table.notes])


def _row(entry: Entry) -> list[Cell | str]:
    row = entry.setting
    halving = entry.halving
    return [
        str(entry.rank or "–"),
        row.name,
        leakage_cell(entry.leakage),
        format_interval(row.cost, 1),
        "–" if halving.setting is None else format_number(halving.value.value, 1),
        entry.gives_away_words or "–",
        f"{success_words(row)}, undefended {format_number(row.twin_success.value)}, "
        f"{count(len(row.setting.seeds), 'seed')}",
    ]


def _baseline(row: Result) -> list[Cell | str]:
    name = "no protection" if row.setting.undefended else "untuned model"
    cost = "0.0" if row.defense == "none" else "–"
    leakage = leakage_cell(row.leakage)
    cells: list[Cell | str] = ["–", name, leakage, cost, "–", "–", success_words(row)]
    return [Cell(c, muted=True) if isinstance(c, str) else c for c in cells]
