"""Differences between two collections of records on the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from leakboard.bench.contracts import grouped
from leakboard.leaderboards.rendering import Table, columns
from leakboard.leaderboards.tables import Change, Changes, Interval, format_interval

COLUMNS = columns("setting", "number", ">before", ">after", ">difference", "?why")
CLEAR = "! The 95 % interval of the difference excludes 0. Common seeds are compared in pairs."


def changes_tables(found: Changes) -> Iterator[Table | str]:
    """New and removed settings, a table of changed numbers for each task and model, and a summary."""
    if found.note:
        yield found.note
    by_kind = grouped(found, lambda change: change.kind)
    for change in by_kind.get("new", []) + by_kind.get("gone", []):
        yield f"{change.kind}: {_place(change)} {change.setting}"
    for place, own in grouped(by_kind.get("changed", []), _place).items():
        yield Table(place, COLUMNS, [*map(_row, own)], [CLEAR])
    yield found.summary


def _row(change: Change) -> list[str]:
    gap = "not comparable"
    if change.difference is not None:
        sign = "+" if change.difference.value > 0 else ""
        gap = f"{sign}{_number(change.difference)}{' !' if change.clear else ''}"
    why = "; ".join(change.why) or "–"
    return [change.setting, change.what, _number(change.old), _number(change.new), gap, why]


def _number(of: Interval | None) -> str:
    return "–" if of is None else format_interval(of, 3)


def _place(change: Change) -> str:
    return f"{change.task} · {change.model} · cut {change.cut}"
