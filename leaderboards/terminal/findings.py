"""Findings on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from leakboard.leaderboards.findings import RULES, Finding
from leakboard.leaderboards.tables import count


def findings_text(found: Sequence[Finding]) -> Iterator[RenderableType]:
    """Below each rule's question its claims, and after each claim what stands behind it."""
    for rule, claims in groupby(found, key=lambda one: one.rule):
        yield Text.assemble((RULES[rule][1], "bold"), f" ({rule})")
        for one in claims:
            more = f" and {count(len(one.keys) - 1, 'more record')}" if len(one.keys) > 1 else ""
            behind = f"n = {one.n:,}, {count(one.seeds, 'seed')}, {one.keys[0]}{more}"
            yield Padding(Text.assemble(one.claim, "\n", (behind, "dim")), (0, 0, 1, 2))
    yield Text(count(len(found), "finding"))
