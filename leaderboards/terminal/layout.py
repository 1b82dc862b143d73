"""How a table stands on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions
from rich.table import Table
from rich.text import Text

WIDE = 100
"""Columns of a terminal from which on a wide table is readable."""


def titled(title: str) -> Table:
    """An empty table, narrow enough that most fit into 80 columns."""
    return Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)


@dataclass(frozen=True)
class Fitting:
    """A table, or on a narrow terminal one that leaves out what `without` names."""

    wide: Table
    narrow: Table
    without: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table | Text]:
        if options.max_width >= WIDE:
            yield self.wide
        else:
            yield self.narrow
            yield Text(f"{self.without} stand beside it from {WIDE} columns on", style="dim")
