"""Differences between two collections of records on the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from leakboard.leaderboards.rendering import Column, Table
from leakboard.leaderboards.tables import Change, Changes, Interval, format_interval

COLUMNS = (
    Column("setting"),
    Column("number"),
    Column("before", align="right"),
    Column("after", align="right"),
    Column("difference", align="right"),
    Column("why", optional=True),
)
CLEAR = "! The 95 % interval of the difference excludes 0. Common seeds are compared in pairs."


def changes_tables(found: Changes) -> Iterator[Table | str]:
    """New and removed settings, a table of changed numbers for each task and model, and a summary."""
    if found.note:
        yield found.note
    for kind in ("new", "gone"):
        for one in found:
            if one.kind == kind:
                yield f"{kind}: {_place(one)} {one.setting}"
    changed = [one for one in found if one.kind == "changed"]
    for place in dict.fromkeys(map(_place, changed)):
        rows = [_row(one) for one in changed if _place(one) == place]
        yield Table(place, COLUMNS, rows, [CLEAR])
    yield found.summary


def _row(one: Change) -> list[str]:
    gap = "not comparable"
    if one.difference is not None:
        sign = "+" if one.difference.value > 0 else ""
        gap = f"{sign}{_number(one.difference)}{' !' if one.clear else ''}"
    why = "; ".join(one.why) or "–"
    return [one.setting, one.what, _number(one.old), _number(one.new), gap, why]


def _number(of: Interval | None) -> str:
    return "–" if of is None else format_interval(of, 3)


def _place(one: Change) -> str:
    return f"{one.task} · {one.model} · cut {one.cut}"
