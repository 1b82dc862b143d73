"""The matrix and the leaderboards as tables of the site."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import pandas as pd

from leaderboards.site.cells import Cell, Column, Table, number, of_attack, of_defense
from leaderboards.site.links import Links
from leaderboards.tables import (
    NOT_SHOWN,
    NOTHING_WORKS,
    Board,
    Line,
    Matrix,
    Shield,
    points_lost,
    shapes,
    worded,
)

NUMBER = re.compile(r"((?:≤ )?(-?\d+(?:\.\d+)?))(?: (\[.*\]))?")
"""A number of a board, which may be an upper bound and have its interval behind it."""


def matrix_table(matrix: Matrix, id: str, links: Links) -> Table:
    """One row per defense: what it loses, what it keeps against each goal, what it costs."""
    one = matrix.comparison
    columns = [
        Column("defense"),
        Column("points of utility lost", number=True),
        *(_column(matrix, aim) for aim in matrix.aims),
        Column("claims"),
        Column("MB per epoch", number=True, about="crossing the trust boundary, both ways"),
        Column("the customer computes"),
    ]
    notes = dict[str, int]()
    rows = [
        [
            of_defense(line.defense, links, "" if line.label == line.defense else line.label),
            _lost(line),
            *(_shield(line.shields[aim], notes) for aim in matrix.aims),
            Cell(line.claimed),
            number(None) if line.sent is None else Cell(f"{line.sent:.3g}", sort=line.sent),
            Cell(line.local),
        ]
        for line in matrix.lines
    ]
    title = f"{one.task} · {one.model} · {one.words}"
    return Table(id, title, columns, rows, [f"({n}) {why}" for why, n in notes.items()])


def board_table(board: Board, id: str, links: Links) -> Table:
    """The rows of a board; its numbers sort as numbers."""
    columns = []
    for name in map(str, board.rows.columns):
        texts = [str(value) for value in board.rows[name]]
        numeric = all(text in ("–", "", NOT_SHOWN) or NUMBER.fullmatch(text) for text in texts)
        columns.append(Column(name, number=numeric and any(texts)))
    title = f"{board.goal} · {board.task} · {board.model} · {board.words}"
    return Table(id, title, columns, _rows(board.rows, columns, links))


def papers_table(name: str, pairs: pd.DataFrame, note: str, id: str, links: Links) -> Table:
    """What was measured here beside what a paper prints, as `leaderboards.tables.beside.beside` pairs them."""
    told = worded(pairs)
    measured = (" printed", " here", " apart")
    columns = [Column(name, number=name.endswith(measured)) for name in map(str, told)]
    notes = [*shapes(pairs), *([note] if note else [])]
    return Table(id, name, columns, _rows(told, columns, links), notes)


def _rows(found: pd.DataFrame, columns: Sequence[Column], links: Links) -> list[list[Cell]]:
    return [
        [_entry(column, str(row[column.name]), links) for column in columns]
        for row in found.to_dict("records")
    ]


def _entry(column: Column, text: str, links: Links) -> Cell:
    if column.name == "defense":
        return of_defense(text, links)
    if column.name == "attack":
        return of_attack(text, links)
    match = NUMBER.fullmatch(text) if column.number else None
    if match is None:
        sort = math.nan if column.number else None
        return Cell(text, sort=sort, hidden=text == NOT_SHOWN)
    return Cell(match[1], match[3] or "", float(match[2]))


def _lost(line: Line) -> Cell:
    points, between = points_lost(line.lost)
    mark = "" if line.within else " !"
    return Cell(f"{points}{mark}", between, float(line.lost["points"]))


def _column(matrix: Matrix, aim: tuple[str, str]) -> Column:
    idle = f": {NOTHING_WORKS}" if aim in matrix.idle else ""
    return Column(" ".join(aim).strip() + idle, number=True)


def _shield(shield: Shield, notes: dict[str, int]) -> Cell:
    remarks = shield.remarks(notes)
    hidden = shield.standing == NOT_SHOWN
    if shield.kept is None:
        return Cell(f"{shield.number}{remarks}".strip(), sort=math.nan, hidden=hidden)
    beneath = f"{shield.row['attack']}{remarks}"
    kept = float(shield.kept)
    return Cell(shield.number, beneath, kept, kept=kept if shield.coloured else None)
