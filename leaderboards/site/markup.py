"""Rows of tables as HTML. A site has a million entries, and a template takes seven times as long."""

from __future__ import annotations

from functools import cache

from markupsafe import Markup, escape

from leaderboards.site.cells import Cell, Column, Table
from leaderboards.site.charts import outline
from leaderboards.tables import Look

CLASSES = {
    (False, False): "<td",
    (False, True): '<td class="unshown"',
    (True, False): '<td class="number"',
    (True, True): '<td class="number unshown"',
}
"""The start of an entry, by whether it is a number, and whether what is in it is not shown."""


def rows(table: Table) -> Markup:
    """The rows of a table; all text in them is escaped."""
    return Markup(
        "".join(
            f"<tr>\n{''.join(_entry(*one) for one in zip(row, table.columns, strict=True))}</tr>\n"
            for row in table.rows
        )
    )


def mark(look: Look) -> Markup:
    """The sign of a method."""
    return _sign(look.colour, look.marker)


@cache
def _sign(colour: str, marker: str) -> Markup:
    return Markup(
        '<svg class="mark" viewBox="-6 -6 12 12" aria-hidden="true" style="--c: {}"><path d="{}"/></svg>'
    ).format(colour, outline(marker))


def _entry(cell: Cell, column: Column) -> str:
    start = CLASSES[column.number, cell.hidden]
    shade = "" if cell.kept is None else f' style="--kept: {100 * cell.kept:.0f}%"'
    order = "" if cell.sort is None else f' data-sort="{escape(cell.order)}"'
    sign = f"{mark(cell.look)} " if cell.look else ""
    text = escape(cell.text)
    told = f'<a href="{escape(cell.href)}">{text}</a>' if cell.href else text
    small = f" <small>{escape(cell.small)}</small>" if cell.small else ""
    return f"{start}{shade}{order}>{sign}{told}{small}</td>\n"
