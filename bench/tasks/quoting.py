"""Detection of the delimiter and quoting of delimited text."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

from leakboard.bench.contracts import LeakboardError

DELIMITERS = (",", "\t", ";", "|")
LOOKED_AT = 200
"""Number of rows with which a delimiter is tested."""
MOST_LINES = 100_000
"""Number of lines in which these rows are looked for."""
SEPARATOR = "sep="
"""First line of a file of a spreadsheet that specifies its delimiter."""


@dataclass(frozen=True)
class Dialect:
    """Format of delimited text.

    Attributes:
        quoted: True if fields may be quoted, with doubled quotes inside; otherwise quotes are plain characters.
        skipped: number of lines before the header.
    """

    delimiter: str
    quoted: bool
    skipped: int = 0

    def reader(self, lines: TextIO) -> Any:
        """A `csv.reader` from the header line on; its `line_num` counts all lines."""
        if self.skipped:
            lines = _Blanked(lines)  # type: ignore[assignment]
        if self.quoted:
            reader = csv.reader(lines, strict=True, delimiter=self.delimiter)
        else:
            reader = csv.reader(lines, delimiter=self.delimiter, quoting=csv.QUOTE_NONE)
        if self.skipped:
            next(reader)
        return reader

    @property
    def remedy(self) -> str:
        """Advice for a row that cannot be read."""
        if not self.quoted:
            return (
                "A tab or a line break inside a text needs quotes: save the file as CSV or Parquet"
            )
        return (
            "A text with a delimiter, a quote or a line break stands in quotes, and quotes in it are doubled; "
            "or save the file as Parquet"
        )


class _Blanked:
    """Lines with a blank first line in place of the given one."""

    def __init__(self, lines: TextIO) -> None:
        next(lines)
        self.lines: Iterator[str] = chain(["\n"], lines)

    def __iter__(self) -> Iterator[str]:
        return self.lines


def detect_dialect(path: Path, lines: Callable[[], TextIO], commas: bool, quotes: bool) -> Dialect:
    """Detect the format of a file.

    Args:
        lines: opens the text of the file.
        commas: True if commas are expected, False for tabs.
        quotes: True if the file contains a quote.

    Raises:
        LeakboardError: a file with tabs has both quoted fields and quotes that are not.
    """
    first = lines().readline().strip()
    if first.lower().startswith(SEPARATOR) and len(first) == len(SEPARATOR) + 1:
        return Dialect(first[-1], True, skipped=1)
    usual = "," if commas else "\t"
    delimiter = usual
    for candidate in (usual, *(one for one in DELIMITERS if one != usual)):
        if candidate in first and _fits(lines(), candidate, quotes):
            delimiter = candidate
            break
    if commas or delimiter != usual:
        return Dialect(delimiter, True)
    return Dialect(delimiter, quotes and _is_quoted(path, lines))


def _fits(lines: TextIO, delimiter: str, quotes: bool) -> bool:
    """True if the first rows have as many fields as the header, and at least two."""
    for quoting in (csv.QUOTE_NONE, csv.QUOTE_MINIMAL) if quotes else (csv.QUOTE_NONE,):
        lines.seek(0)
        try:
            rows = csv.reader(lines, delimiter=delimiter, quoting=quoting)
            widths = {len(row) for row in islice(filter(None, islice(rows, MOST_LINES)), LOOKED_AT)}
        except csv.Error:
            continue
        if len(widths) == 1 and min(widths) > 1:
            return True
    return False


def _is_quoted(path: Path, lines: Callable[[], TextIO]) -> bool:
    """True if the fields of a file with tabs are quoted.

    They are if all fields with quotes are quoted, with doubled quotes inside, or if rows are complete only with
    quoting. A quoted field without special characters is plain text, unless all fields with commas are quoted, as
    spreadsheets do.
    """
    doubled = loose = ragged = bare_comma = wrapped_comma = 0
    width, header = 0, False
    for line, row in enumerate(
        csv.reader(lines(), delimiter="\t", quoting=csv.QUOTE_NONE), start=1
    ):
        if not width:
            width, header = len(row), all(map(_is_wrapped, row))
        if row and len(row) != width:
            ragged = ragged or line
        for value in row:
            if '"' not in value:
                bare_comma = bare_comma or line * ("," in value)
            elif not _is_wrapped(value):
                loose = loose or line
            elif '""' in value[1:-1]:
                doubled = doubled or line
            elif "," in value:
                wrapped_comma = wrapped_comma or line
    if ragged:
        return _is_whole(lines(), width)
    if header and not loose:
        return True
    if doubled and loose:
        raise LeakboardError(
            f"{path}, line {doubled}: the field looks quoted, with doubled quotes inside, and line {loose} has "
            "quotes that are not; save the file as CSV or Parquet, where quoting is unambiguous"
        )
    return bool(doubled) or bool(wrapped_comma and not bare_comma and not loose)


def _is_wrapped(field: str) -> bool:
    """True if a field is quoted, with doubled quotes inside."""
    inner = field[1:-1]
    return len(field) > 1 and field[0] == field[-1] == '"' and '"' not in inner.replace('""', "")


def _is_whole(lines: Iterable[str], width: int) -> bool:
    """True if all rows have `width` fields with quoting."""
    try:
        rows = csv.reader(lines, delimiter="\t", strict=True)
        return all(len(row) == width for row in rows if row)
    except csv.Error:
        return False
