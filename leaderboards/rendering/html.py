"""Tables as HTML."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from leakboard.bench.contracts import LeakboardError
from leakboard.leaderboards.rendering.table import Cell, Column, Table

TABLE_CSS = """\
table.results { border-collapse: collapse; }
table.results caption { text-align: left; font-weight: 600; }
table.results th, table.results td { padding: 0.25rem 0.75rem 0.25rem 0; text-align: left; vertical-align: top; }
table.results thead th, table.results tr { border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent); }
table.results .right { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
table.results .muted, table.results small { opacity: 0.65; }
table.results .good { color: #117733; }
table.results .bad { color: #882255; }
table.results tr.between th { font-weight: normal; font-style: italic; padding-top: 0.75rem; }
.bar { position: relative; display: block; width: 100%; min-width: 5rem; height: 0.35rem;
  background: color-mix(in srgb, currentColor 10%, transparent); }
.bar i { position: absolute; inset: 0 auto 0 0; width: var(--value); background: #0077bb; }
.bar b { position: absolute; top: 42%; height: 16%; left: var(--low);
  width: calc(var(--high) - var(--low)); background: currentColor; }
"""
"""Style of tables; a page includes it once."""


def html_table(table: Table, css_class: str = "results") -> Markup:
    """The table with caption, scopes of headings, bars and notes; all text is escaped.

    Raises:
        LeakboardError: a link that is neither relative nor http(s).
    """
    heads = Markup("").join(_head(column) for column in table.columns)
    rows = Markup("\n").join(
        _between(row, len(table.columns))
        if isinstance(row, str)
        else _row(table.cells(row), table.columns)
        for row in table.rows
    )
    notes = Markup("").join(Markup('<p class="note">{}</p>\n').format(n) for n in table.notes)
    return Markup(
        '<table class="{}">\n<caption>{}</caption>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}\n</tbody>\n</table>\n{}'
    ).format(css_class, table.title, heads, rows, notes)


def _head(column: Column) -> Markup:
    return Markup('<th scope="col"{}{}>{}</th>').format(
        _attribute("class", column.align if column.align == "right" else ""),
        _attribute("title", column.help),
        column.label,
    )


def _between(text: str, columns: int) -> Markup:
    return Markup('<tr class="between"><th scope="rowgroup" colspan="{}">{}</th></tr>').format(
        columns, text
    )


def _row(cells: Sequence[Cell], columns: Sequence[Column]) -> Markup:
    parts = Markup("").join(
        _cell(cell, column, n == 0)
        for n, (cell, column) in enumerate(zip(cells, columns, strict=True))
    )
    return Markup("<tr>{}</tr>").format(parts)


def _cell(cell: Cell, column: Column, names_row: bool) -> Markup:
    body = Markup("{}").format(cell.text)
    if cell.link:
        body = Markup('<a href="{}">{}</a>').format(_checked(cell.link), body)
    if cell.detail:
        body += Markup(" <small>{}</small>").format(cell.detail)
    if cell.bar is not None and not cell.bar.is_missing:
        value, low, high = (f"{100 * x:.1f}%" for x in cell.bar.clipped().ends)
        if "nan%" in (low, high):
            low = high = value
        body += Markup(
            '<span class="bar" aria-hidden="true" style="--value:{};--low:{};--high:{}"><i></i><b></b></span>'
        ).format(value, low, high)
    kinds = [column.align] * (column.align == "right") + [cell.tone] * (cell.tone != "plain")
    return Markup("<{0}{1}{2}{3}{4}>{5}</{0}>").format(
        "th" if names_row else "td",
        Markup(' scope="row"') if names_row else "",
        _attribute("class", " ".join(kinds)),
        _attribute("title", cell.help),
        _attribute("data-sort", "" if cell.sort is None else f"{cell.sort:g}"),
        body,
    )


def _attribute(name: str, value: str) -> Markup:
    return Markup(' {}="{}"').format(name, value) if value else Markup("")


def _checked(link: str) -> str:
    scheme, colon, _ = link.partition(":")
    if colon and "/" not in scheme and scheme.lower() not in ("http", "https"):
        raise LeakboardError(f"link: expected a relative or http(s) address, got {link!r:.80}")
    return link
