"""How a table stands on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
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
    """A table, on a narrow terminal without the columns that can be spared."""

    table: Table
    spared: tuple[str, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table | Text]:
        if options.max_width >= WIDE:
            yield self.table
            return
        narrow = copy(self.table)
        narrow.columns = [one for one in self.table.columns if one.header not in self.spared]
        yield narrow
        told = " and ".join(self.spared)
        yield Text(f"{told} stand beside it from {WIDE} columns on", style="dim")
