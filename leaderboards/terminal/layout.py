"""Conversion of tables and sentences for rich."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.text import Text

from leakboard.leaderboards.rendering import Table, terminal_table
from leakboard.leaderboards.tables import Result, format_number

FIRST = 10
"""Number of rows or sentences without `--all`."""


def success_words(row: Result) -> str:
    """'eia-map: token accuracy 0.53, guessing 0.05'."""
    success, guessing = format_number(row.success.value), format_number(row.baseline)
    return f"{row.attack}: {row.metric} {success}, guessing {guessing}"


def printable(parts: Iterable[Table | str]) -> Iterator[RenderableType]:
    """Tables and sentences for rich, with an empty line after each table."""
    for part in parts:
        if isinstance(part, Table):
            yield terminal_table(part)
            yield Text("")
        else:
            yield Text(part)  # no markup, since names may contain brackets
