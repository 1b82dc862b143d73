"""Tables on the terminal, with columns that adapt to its width without splitting words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.text import Text

from leakboard.leaderboards.rendering.table import Cell, Table

GAP = 2
"""Blanks between columns."""
EASY = 24
"""Comfortable width of a column of words in characters."""


@dataclass(frozen=True)
class TerminalTable:
    """A table that rich prints."""

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        table, width = self.table, options.max_width
        rows = [row if isinstance(row, str) else table.cells(row) for row in table.rows]
        shown, widths = _layout(table, [row for row in rows if not isinstance(row, str)], width)
        aligned = [table.columns[i].align for i in shown]
        yield Text(table.title, style="bold underline")
        heads = [Text(table.columns[i].label, style="dim") for i in shown]
        yield from _lines(console, heads, widths, aligned)
        yield Text("─" * min(width, sum(widths) + GAP * (len(widths) - 1)), style="dim")
        for row in rows:
            if isinstance(row, str):
                yield Text(row, style="bold")
                continue
            yield from _lines(console, [_text(row[i]) for i in shown], widths, aligned)
            folded = [i for i in range(len(row)) if i not in shown and row[i].text not in ("", "–")]
            if folded:
                words = [f"{table.columns[i].label} {_text(row[i]).plain}" for i in folded]
                below = Text(" · ".join(words), style="dim")
                for line in below.wrap(console, max(width - 2, 1)):
                    yield Text("  ") + line
        for note in table.notes:
            yield Text(note, style="dim")


def _layout(
    table: Table, rows: Sequence[Sequence[Cell]], width: int
) -> tuple[list[int], list[int]]:
    """The columns that fit into the width, and their widths.

    If there is not enough room, optional columns are folded, the last first. Then columns of words shrink, at most to
    their longest word.
    """
    shown = list(range(len(table.columns)))
    texts = {i: [table.columns[i].label, *(_text(row[i]).plain for row in rows)] for i in shown}
    whole = {i: max(map(cell_len, own)) for i, own in texts.items()}
    least = {
        i: max(cell_len(word) for text in own for word in text.split(" "))
        if table.columns[i].align == "left"
        else max(cell_len(part) for part in [*own[0].split(" "), *own[1:]])
        for i, own in texts.items()
    }
    easy = {i: min(whole[i], max(least[i], EASY)) for i in shown}
    while sum(easy[i] + GAP for i in shown) - GAP > width:
        optional = [i for i in shown if table.columns[i].optional]
        if not optional:
            break
        shown.remove(optional[-1])
    widths = {i: whole[i] for i in shown}
    while sum(widths.values()) + GAP * (len(shown) - 1) > width:
        giving = [i for i in shown if widths[i] > least[i]]
        if not giving:
            break
        widths[max(giving, key=lambda i: widths[i])] -= 1
    return shown, [widths[i] for i in shown]


def _lines(
    console: Console, cells: Sequence[Text], widths: Sequence[int], aligned: Sequence[str]
) -> Iterator[Text]:
    wrapped = [
        cell.wrap(console, width, justify="right" if side == "right" else "left")
        for cell, width, side in zip(cells, widths, aligned, strict=True)
    ]
    blank = [Text(" " * width) for width in widths]
    for parts in zip_longest(*wrapped):
        line = Text(" " * GAP).join(part or empty for part, empty in zip(parts, blank, strict=True))
        line.rstrip()
        yield line


def _text(cell: Cell) -> Text:
    text = Text(cell.text, "dim" if cell.muted else "")
    if cell.detail:
        text = Text.assemble(text, (f" {cell.detail}", "dim"))
    return text
