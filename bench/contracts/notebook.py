"""Small HTML for notebooks, in which all text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from leakboard.bench.contracts.outside import plain

MOST_ROWS, LONGEST_CELL = 30, 500
"""Largest number of rows, and of characters of a cell; the number of further rows is stated."""


def notebook_html(
    heading: str,
    head: Sequence[str] = (),
    rows: Iterable[Sequence[str]] = (),
    notes: Iterable[str] = (),
) -> str:
    """A heading, a table and notes as HTML; names from records cannot add elements to it.

    Args:
        head: labels of the columns; without labels the first cell of each row is its label.
    """
    every = list(rows)
    labels = "".join(f"<th>{_text(label)}</th>" for label in head)
    body = "".join(_row(row, bool(head)) for row in every[:MOST_ROWS])
    parts = [f"<p><strong>{_text(heading)}</strong></p>"]
    if every:
        parts.append(
            f"<table>{f'<thead><tr>{labels}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"
        )
    if len(every) > MOST_ROWS:
        parts.append(f"<p>and {len(every) - MOST_ROWS} more rows</p>")
    parts += [f"<p><small>{_text(note)}</small></p>" for note in notes]
    return f'<div class="leakboard">{"".join(parts)}</div>'


def _row(cells: Sequence[str], has_head: bool) -> str:
    texts = [_text(cell) for cell in cells]
    first = f"<td>{texts[0]}</td>" if has_head else f"<th>{texts[0]}</th>"
    return f"<tr>{first}{''.join(f'<td>{text}</td>' for text in texts[1:])}</tr>"


def _text(text: str) -> str:
    return escape(plain(text, LONGEST_CELL))
