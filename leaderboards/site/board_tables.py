"""The matrix and the leaderboards as tables of the site."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import pandas as pd

from leakboard.leaderboards.site.cells import (
    Cell,
    Column,
    Table,
    number,
    of_attack,
    of_defense,
    wordy,
)
from leakboard.leaderboards.site.links import Links
from leakboard.leaderboards.tables import (
    NOT_SHOWN,
    NOTHING_WORKS,
    Board,
    Laid,
    Line,
    Matrix,
    Shield,
    points_lost,
    rows_of,
    shapes,
    worded,
)

NUMBER = re.compile(r"((?:≤ )?([-+]?\d+(?:\.\d+)?))(?:,? (\[.*\]|floor .*))?")
"""A number of a board, which may be an upper bound and have its interval or its floor behind it."""
LONG = ("setting", "setup", "where")
"""Columns whose entries may be long."""


def matrix_table(matrix: Matrix, id: str, links: Links) -> Table:
    """One row per defense: what it loses, what it keeps against each goal, what it costs."""
    one = matrix.comparison
    columns = [
        Column("defense"),
        Column("cost", number=True),
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


WHERE = ("task", "model", "setup", "goal")
"""What a row of a board is compared within."""


def board_table(boards: Sequence[Board], links: Links) -> Table:
    """All boards of one question as one table, from which a reader chooses; its numbers sort as numbers."""
    names = list(dict.fromkeys(str(name) for board in boards for name in board.rows.columns))
    # What stands first stays in sight.
    first = ["defense", "setting", "MB per epoch"]
    names.sort(key=lambda name: first.index(name) if name in first else len(first))
    every = []
    for board in boards:
        where = dict(zip(WHERE, (board.task, board.model, board.words, board.goal), strict=True))
        every += [{**dict.fromkeys(names, "–"), **row, **where} for row in _plain(board.rows)]
    columns = [Column(name, number=_numeric([row[name] for row in every])) for name in names]
    columns += [Column(name) for name in WHERE]
    rows = [[_entry(column, row[column.name], links) for column in columns] for row in every]
    return Table(f"board-{boards[0].name}", boards[0].question, columns, rows, [boards[0].note])


def _plain(rows: pd.DataFrame) -> list[dict[str, str]]:
    return [{str(k): str(v) for k, v in row.items()} for row in rows_of(rows)]


def _numeric(texts: Sequence[str]) -> bool:
    known = [text for text in texts if text not in ("–", "", NOT_SHOWN)]
    return bool(known) and all(NUMBER.fullmatch(text) for text in known)


def papers_table(laid: Laid, id: str, links: Links) -> Table:
    """Every setting of a printed table, and what was measured of it here."""
    told = worded(laid)
    measured = (" printed", " here", " apart")
    columns = [Column(name, number=name.endswith(measured)) for name in map(str, told)]
    rows = [[_entry(column, row[column.name], links) for column in columns] for row in _plain(told)]
    return Table(id, laid.title, columns, rows, [*map(str, shapes(laid)), *laid.notes])


def _entry(column: Column, text: str, links: Links) -> Cell:
    if column.name == "defense":
        return of_defense(text, links)
    if column.name == "attack":
        return of_attack(text, links)
    match = NUMBER.fullmatch(text) if column.number else None
    if match is None:
        if column.name in LONG:
            return wordy(text)
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
