"""The matrix, the leaderboards, and the papers' numbers beside ours."""

from __future__ import annotations

import pandas as pd
from rich.console import RenderableType
from rich.text import Text

from leakboard.bench.contracts import GLOSSARY
from leakboard.leaderboards.tables import (
    NOTHING_WORKS,
    PROVEN,
    Board,
    Line,
    Matrix,
    RecordSet,
    Shield,
    beside,
    points_lost,
    shapes,
    worded,
)
from leakboard.leaderboards.terminal.layout import Fitting, titled

SHADES = ((0.2, "red"), (0.8, "yellow"), (1.0, "green"))
"""Privacy up to which a cell has which colour."""
BESIDES = ("EP", "EP at chance")
"""What privacy is worked out from: on the site and in its tables, and too wide for a terminal."""
REPEATED = ("task", "defense", "seeds", "flags", "matched on", "where")
"""Said once, below the table, where all rows say the same."""


def matrix_tables(found: Matrix) -> list[RenderableType]:
    """One row per defense; a cell holds the privacy kept, of 1, and the attack that was strongest."""
    one = found.comparison
    table = titled(f"{one.task} · {one.model} · {one.words}")
    table.add_column("defense", overflow="fold")
    table.add_column("points lost", no_wrap=True)
    for aim in found.aims:
        idle = f"\n{NOTHING_WORKS}" if aim in found.idle else ""
        table.add_column(" ".join(aim).strip() + idle, overflow="fold")
    table.add_column("claims", overflow="fold")
    table.add_column("MB/epoch", justify="right")
    notes = dict[str, int]()
    for line in found.lines:
        cells = [_cell(line.shields[aim], notes) for aim in found.aims]
        sent = "–" if line.sent is None else f"{line.sent:.3g}"
        table.add_row(Text(line.named), Text(_lost(line)), *cells, Text(line.claimed), Text(sent))
    over = any(not line.within for line in found.lines)
    parts: list[RenderableType] = [Fitting(table, ("claims", "MB/epoch"))]
    parts += [Text(f"({n}) {why}", style="dim") for why, n in notes.items()]
    about = f"privacy, under the strongest attack: {GLOSSARY['privacy'].rstrip('.')}"
    if any(shield.standing == PROVEN for line in found.lines for shield in line.shields.values()):
        about += "; ≤ at most so much: the attack found it, and has no certificate"
    beyond = f"; ! more than {found.budget:g} points lost at every setting" if over else ""
    return [*parts, Text(about + beyond, style="dim")]


def paper_tables(found: RecordSet) -> list[RenderableType]:
    """What the paper that a suite mirrors prints, and what was measured here at the same settings."""
    parts: list[RenderableType] = []
    paper = found.suite.paper if found.suite else None
    if paper is None:
        return parts
    for artefact in paper.artefact:
        for laid in beside(paper.paper, artefact, found.frame(), found.records, found.by_folder):
            if laid.measured.empty:
                parts.append(Text(f"{laid.title}: none of the printed settings was measured"))
                continue
            about = (
                "Both by the paper's own attacks; the models differ, so the numbers need not agree."
            )
            title = f"{found.name}: ours beside {laid.title}"
            table, note = _rows(title, worded(laid), " ".join([about, *laid.notes]))
            parts += [table, *(Text(str(shape)) for shape in shapes(laid)), note]
    return parts


def board_tables(found: Board) -> list[RenderableType]:
    """The question, its answer as a table, and what to know about it."""
    title = f"{found.question}\n{found.goal} · {found.task} · {found.model} · {found.words}"
    rows = found.rows
    if "setting" in rows:
        same = rows["setting"] == rows["defense"]
        both = rows["defense"] + ("\n" + rows["setting"]).mask(same, "")
        flags = rows["flags"].str.replace(",", ", ")
        rows = rows.assign(defense=both, flags=flags).drop(columns=["setting", *BESIDES])
    return _rows(title, rows, found.note)


def _rows(title: str, rows: pd.DataFrame, note: str) -> list[RenderableType]:
    """A table and its note, which says once what stands in every row."""
    alike = [name for name in REPEATED if name in rows and rows[name].nunique() == 1]
    told = [f"{name} {rows[name].iloc[0]}" for name in alike if rows[name].iloc[0]]
    said = f" In all rows: {'; '.join(told)}." if told else ""
    table = titled(title)
    shown = rows.drop(columns=alike)
    for name in shown.columns:
        table.add_column(str(name), no_wrap=name in ("rank", "privacy"), overflow="fold")
    for row in shown.itertuples(index=False):
        table.add_row(*(Text(str(value)) for value in row))
    return [table, Text(note + said, style="dim")]


def _lost(line: Line) -> str:
    points, between = points_lost(line.lost)
    return f"{points}\n{between}" + "!" * (not line.within)


def _cell(shield: Shield, notes: dict[str, int]) -> Text:
    remarks = shield.remarks(notes)
    if shield.kept is None:
        return Text(f"{shield.number}{remarks}".strip(), style="dim")
    shade = next(shade for top, shade in SHADES if shield.kept <= top) if shield.coloured else ""
    beside = f" {shield.row['attack']}{remarks}"
    return Text(shield.number, style=shade) + Text(beside, style="dim")
