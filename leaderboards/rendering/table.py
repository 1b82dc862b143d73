"""Description of a table, for the terminal and for pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from leakboard.leaderboards.tables import Interval, format_percent_interval


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        optional: on a narrow terminal, the column may move to a line below each row; the last ones move first.
    """

    label: str
    align: Literal["left", "right"] = "left"
    optional: bool = False


def columns(*labels: str) -> tuple[Column, ...]:
    """Columns by their labels: '>' before one aligns it to the right, '?' makes it optional."""
    return tuple(
        Column(
            label.lstrip(">?"),
            "right" if label.startswith(">") else "left",
            optional=label.startswith("?"),
        )
        for label in labels
    )


def in_unit(columns: Sequence[Column], unit: str) -> list[Column]:
    """The columns, of which those in points are in another unit."""
    return [replace(column, label=column.label.replace("points", unit)) for column in columns]


@dataclass(frozen=True)
class Cell:
    """An entry.

    Attributes:
        detail: small or pale text after the main text.
        muted: write it in pale letters.
        bar: share from 0 to 1 with its interval, drawn on pages.
    """

    text: str
    detail: str = ""
    muted: bool = False
    bar: Interval | None = None

    @property
    def words(self) -> str:
        """Text and detail as plain text."""
        return f"{self.text} ({self.detail})" if self.detail else self.text


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        rows: entries of each row, of which the first names it; a string is a line between rows, such as a heading.
        notes: notes below the table.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell | str] | str]
    notes: Sequence[str] = field(default=())

    def __post_init__(self) -> None:
        for row in self.rows:
            if not isinstance(row, str) and len(row) != len(self.columns):
                raise ValueError(
                    f"{self.title}: {len(row)} entries for {len(self.columns)} columns: {row}"
                )

    def cells(self, row: Sequence[Cell | str]) -> list[Cell]:
        """The entries of one row."""
        return [Cell(one) if isinstance(one, str) else one for one in row]


def leakage_cell(leakage: Interval) -> Cell:
    """Leakage as a percentage with its interval and a bar, or 'not certified' in pale letters."""
    if leakage.is_missing:
        return Cell("not certified", muted=True)
    return Cell(format_percent_interval(leakage), bar=leakage)


def markdown_table(table: Table) -> str:
    """The table in Markdown with title and notes; nothing in it is read as Markdown or HTML."""
    empty = [""] * (len(table.columns) - 1)
    rows = [
        [row, *empty] if isinstance(row, str) else [cell.words for cell in table.cells(row)]
        for row in table.rows
    ]
    escaped = [map(escape_markdown, row) for row in rows]
    heads = [escape_markdown(column.label) for column in table.columns]
    marks = ["---:" if column.align == "right" else "---" for column in table.columns]
    notes = [f"\n{escape_markdown(note)}" for note in table.notes]
    title = f"**{escape_markdown(table.title)}**\n"
    return "\n".join([title, markdown(heads, escaped, marks), *notes]) + "\n"


def escape_markdown(text: str) -> str:
    """The text on one line, in which no character has a meaning for Markdown or HTML."""
    plain = "".join(each for each in " ".join(text.split()) if each.isprintable())
    return re.sub(r"([\\`*_{}\[\]<>|#!&~$])", r"\\\1", plain)


def markdown(
    head: Sequence[str], rows: Iterable[Iterable[str]], marks: Sequence[str] | None = None
) -> str:
    """A table in Markdown, with marks of alignment below the head."""
    lines = [head, marks or ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
