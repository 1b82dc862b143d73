"""Conversion of tables, sentences and findings for rich."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from leakboard.bench.contracts import grouped
from leakboard.leaderboards.findings import CONDITIONS, TITLES, Finding
from leakboard.leaderboards.rendering import Table, TerminalTable
from leakboard.leaderboards.tables import Result, count, format_number

T = TypeVar("T")
FIRST = 10
"""Number of rows or sentences without `--all`."""


def success_words(row: Result) -> str:
    """'eia-map: token accuracy 0.53, baseline 0.05'."""
    success, baseline = format_number(row.success.value), format_number(row.baseline)
    return f"{row.attack_title}: {row.metric} {success}, baseline {baseline}"


def best_first(ranked: Sequence[T], kind: Callable[[T], Hashable]) -> list[T]:
    """The first of each kind before all others."""
    best = [own[0] for own in grouped(ranked, kind).values()]
    return [*best, *(one for one in ranked if not any(one is each for each in best))]


def printable(parts: Iterable[Table | str]) -> Iterator[RenderableType]:
    """Tables and sentences for rich, with an empty line after each table."""
    for part in parts:
        if isinstance(part, Table):
            yield TerminalTable(part)
            yield Text("")
        else:
            yield Text(part)  # no markup, since names may contain brackets


def findings_text(found: Sequence[Finding], everything: bool) -> Iterator[RenderableType]:
    """The first sentences, or all sentences with their records, by rule."""
    if not everything:
        for finding in found[:FIRST]:
            yield Text(finding.sentence)
        shown = min(FIRST, len(found))
        yield Text(f"{shown} of {count(len(found), 'finding')}; all with --all", "dim")
        return
    yield Padding(Text(CONDITIONS, "dim"), (0, 0, 1, 0))
    for rule, sentences in groupby(found, key=lambda finding: finding.rule):
        yield Text.assemble((TITLES[rule], "bold"), f" ({rule})")
        for finding in sentences:
            keys = f"{finding.keys[0]} and {count(len(finding.keys) - 1, 'more record')}"
            behind = f"{count(finding.seeds, 'seed')}, records {keys if finding.keys[1:] else finding.keys[0]}"
            yield Padding(Text.assemble(finding.sentence, "\n", (behind, "dim")), (0, 0, 1, 2))
    yield Text(count(len(found), "finding"))
