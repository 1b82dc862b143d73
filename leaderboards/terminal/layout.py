"""What a command prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.text import Text

from leakboard.leaderboards.rendering import Table, terminal_table


def printable(parts: Iterable[Table | str]) -> Iterator[RenderableType]:
    """Tables and sentences for rich, an empty line behind each table."""
    for part in parts:
        if isinstance(part, Table):
            yield terminal_table(part)
            yield Text("")
        else:
            yield Text(part)  # not a string: a bracket in a name is no markup
