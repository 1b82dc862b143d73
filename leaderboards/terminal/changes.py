"""What changed between two collections of records, on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from leakboard.leaderboards.tables import Change, Changes
from leakboard.leaderboards.tables.intervals import Interval, format_interval
from leakboard.leaderboards.terminal.layout import titled


def changes_tables(found: Changes) -> Iterator[RenderableType]:
    """What came and went, a table of changed numbers for each task and model, and how many of each there are."""
    for kind in ("new", "gone"):
        for one in found:
            if one.kind == kind:
                yield Text(f"{kind}: {_place(one)} {one.setting}")
    places = dict.fromkeys(_place(one) for one in found if one.kind == "changed")
    for place in places:
        yield _table(
            place, [one for one in found if one.kind == "changed" and _place(one) == place]
        )
    yield Text(found.summary)
    if places:
        yield Text(
            "! The 95 % interval of the difference lies on one side of 0. Seeds that both have are compared one by one.",
            style="dim",
        )


def _table(title: str, own: list[Change]) -> Table:
    table = titled(title)
    for name in ("setting", "what", "before", "after", "difference", "why"):
        table.add_column(name, overflow="fold")
    for one in own:
        mark = " !" if one.clear else ""
        gap = _told(one.difference, "+.3f") + mark if one.difference else "not alike"
        words = (
            one.setting,
            one.what,
            _told(one.old),
            _told(one.new),
            gap,
            "; ".join(one.why) or "–",
        )
        table.add_row(*map(Text, words))
    return table


def _told(of: Interval | None, form: str = "") -> str:
    if of is None:
        return "–"
    if not form:
        return format_interval(of, 3)
    ends = "" if isnan(of.low) else f" [{of.low:{form}}, {of.high:{form}}]"
    return f"{of.value:{form}}{ends}"


def _place(one: Change) -> str:
    return f"{one.task} · {one.model} · cut {one.cut}"
