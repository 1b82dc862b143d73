"""The matrix and the boards on the terminal."""

from __future__ import annotations

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from leaderboards.tables.beside import beside
from leaderboards.tables.boards import Board
from leaderboards.tables.comparisons import points_lost
from leaderboards.tables.looks import SYMBOLS
from leaderboards.tables.matrix import Line, Matrix, Shield

SHADES = ((0.2, "red"), (0.8, "yellow"), (1.0, "green"))
"""Privacy up to which a cell has which colour."""


def matrix(found: Matrix) -> list[RenderableType]:
    """One row per defense; a cell holds the privacy kept, of 1, and the attack that was strongest."""
    one = found.comparison
    title = f"{one.task} · {one.model} · {one.words}"
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("defense")
    table.add_column("points lost", no_wrap=True)
    for goal, attribute in found.aims:
        table.add_column(f"{goal} {attribute}".strip())
    table.add_column("claims")
    table.add_column("MB/epoch", justify="right")
    notes = dict[str, int]()
    for line in found.lines:
        cells = [_cell(line.shields[aim], notes) for aim in found.aims]
        claim = claimed(line)
        sent = "–" if line.sent is None else f"{line.sent:.3g}"
        table.add_row(Text(named(line)), Text(_lost(line)), *cells, Text(claim), Text(sent))
    over = any(not line.within for line in found.lines)
    parts: list[RenderableType] = [table]
    parts += [Text(f"({n}) {why}", style="dim") for why, n in notes.items()]
    about = "privacy: EP / EP of a guesser, under the strongest attack; 0 all is found, 1 no more than by guessing"
    beyond = f"; ! more than {found.budget:g} points lost at every setting" if over else ""
    return [*parts, Text(about + beyond, style="dim")]


def papers(
    name: str, rows: pd.DataFrame, printed: pd.DataFrame | None, note: str
) -> list[RenderableType]:
    """What a paper prints, and what was measured here at the same settings."""
    pairs = beside(rows, printed) if printed is not None else pd.DataFrame()
    if pairs.empty:
        return [Text(f"{name}: at none of the printed settings was anything measured")]
    more = f" {note}" if note else ""
    about = (
        f"Both by the paper's own attacks; the models differ, so the numbers need not agree.{more}"
    )
    return [_rows(f"{name}: ours beside the paper's numbers", pairs), Text(about, style="dim")]


def board(found: Board) -> list[RenderableType]:
    """The question, its answer as a table, and what to know about it."""
    title = f"{found.question}\n{found.goal} · {found.task} · {found.model} · {found.words}"
    return [_rows(title, found.rows), Text(found.note, style="dim")]


def _rows(title: str, rows: pd.DataFrame) -> Table:
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for name in rows.columns:
        table.add_column(str(name), no_wrap=name in ("rank", "privacy"))
    for row in rows.itertuples(index=False):
        table.add_row(*(Text(str(value)) for value in row))
    return table


def named(line: Line) -> str:
    """The defense and the setting that its line stands for."""
    label = "" if line.label == line.defense else f" {line.label}".replace(" = ", "=")
    return line.defense + label


def _lost(line: Line) -> str:
    points, between = points_lost(line.lost)
    return f"{points} {between}" + "!" * (not line.within)


def claimed(line: Line) -> str:
    """The parameters of the formal guarantee in words, or '–'."""
    if line.claim is None:
        return "–"
    formal = {n: v for n, v in line.claim.parameters.items() if n in ("epsilon", "delta", "eta")}
    shown = formal or line.claim.parameters
    return ", ".join(f"{SYMBOLS.get(name, name)} = {value:.3g}" for name, value in shown.items())


def _cell(shield: Shield, notes: dict[str, int]) -> Text:
    remarks = shield.remarks(notes)
    if shield.kept is None:
        return Text(remarks.strip(), style="dim")
    shade = next(shade for top, shade in SHADES if shield.kept <= top)
    beside = f" {shield.row['attack']}{remarks}"
    return Text(f"{shield.kept:.2f}", style=shade) + Text(beside, style="dim")
