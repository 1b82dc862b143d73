"""How a table stands on the terminal."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.table import Table


def titled(title: str) -> Table:
    """An empty table, narrow enough that most fit into 80 columns."""
    return Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
