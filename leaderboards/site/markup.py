"""How pages are made: the environment of their templates, and rows of tables.

A site has a million entries, and a template takes seven times as long as the functions here.
"""

from __future__ import annotations

import re
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from leakboard.bench import __version__
from leakboard.leaderboards.site.cells import Cell, Column, Table
from leakboard.leaderboards.site.charts import outline
from leakboard.leaderboards.site.links import slug
from leakboard.leaderboards.tables import Look, look

CLASSES = {
    (False, False): "<td",
    (False, True): '<td class="unshown"',
    (True, False): '<td class="number"',
    (True, True): '<td class="number unshown"',
}
"""The start of an entry, by whether it is a number, and whether what is in it is not shown."""


def environment(package: str = "leakboard.leaderboards.site") -> Environment:
    """That of the templates of a package; what is put into them is escaped, and what is missing an error."""
    made = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"look": look, "mark": mark, "rows": rows, "version": __version__, "slug": slug}
    made.filters["prose"] = prose
    return made


def prose(text: str) -> Markup:
    """Text of a docstring: what stands between backticks is code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


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
    start = f'<td class="{cell.kind}"' if cell.kind else CLASSES[column.number, cell.hidden]
    shade = "" if cell.kept is None else f' style="--kept: {100 * cell.kept:.0f}%"'
    order = "" if cell.sort is None else f' data-sort="{escape(cell.order)}"'
    sign = f"{mark(cell.look)} " if cell.look else ""
    text = escape(cell.text)
    told = f'<a href="{escape(cell.href)}">{text}</a>' if cell.href else text
    small = f" <small>{escape(cell.small)}</small>" if cell.small else ""
    return f"{start}{shade}{order}>{sign}{told}{small}</td>\n"
