"""Findings on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from leaderboards.findings import Finding
from leaderboards.terminal.layout import titled


def findings_table(found: Sequence[Finding]) -> Table:
    """A row per claim: what it says, by which rule, and the records behind it."""
    table = titled(f"{len(found)} findings")
    for name in ("rule", "claim", "n", "seeds", "records"):
        table.add_column(
            name, overflow="fold", justify="right" if name in ("n", "seeds") else "left"
        )
    for one in found:
        more = f" and {len(one.keys) - 1} more" if len(one.keys) > 1 else ""
        words = (one.rule, one.claim, str(one.n), str(one.seeds), f"{one.keys[0]}{more}")
        table.add_row(*map(Text, words), end_section=True)
    return table
