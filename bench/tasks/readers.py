"""Readers of tables: delimited text, JSON, Parquet, Arrow, and lines of text. Errors name file and line."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from sys import getsizeof
from typing import Any

from leakboard.bench.contracts import LeakboardError, place, plain, visible
from leakboard.bench.tasks import content
from leakboard.bench.tasks.arrow import read_parquet
from leakboard.bench.tasks.content import (
    check_held,
    check_number,
    check_size,
    read_bytes,
)
from leakboard.bench.tasks.quoting import Dialect, detect_dialect
from leakboard.bench.tasks.table import SUFFIXES, Rows, Table
from leakboard.bench.tasks.values import build_table

BOM = b"\xef\xbb\xbf"
CHECKED = 10_000
"""Number of rows after which the size is checked."""
PLACE, NUMBER = 8, 40
"""Bytes of a place in a column, and of a row's number."""
PEEK = 100
"""Number of bytes by which records are told from a list of them."""
LONGEST_FIELD = 2**24
"""Maximum length of a field in characters; the default of `csv` is too short for long texts."""
LARGEST_LIST = 2**25
"""Maximum size of a .json file in bytes, whose records are parsed at once."""
ESCAPED = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
"""Escapes in JSON of a NUL or of a surrogate."""


def read_table(path: Path, plain_tsv: bool = False) -> Table:
    """Read .tsv, .csv or .jsonl, each also with .gz, .json (a list of records), .parquet, or .txt.

    Delimiter and quoting of .tsv and .csv are detected. A .txt file has no header: each non-blank line is a text, in
    the column `text`. Control characters are kept, since the tokeniser handles them; a NUL is an error.

    Args:
        plain_tsv: True if quotes in a .tsv are plain characters.

    Raises:
        LeakboardError: the file is missing, unreadable, empty, not UTF-8, ragged, without rows, too large, has a NUL,
            or its quoting is ambiguous.
    """
    path = place(path)
    if not path.is_file():
        raise LeakboardError(f"{plain(path)}: no such file")
    kind = path.name.removesuffix(".gz")
    if path.name.endswith(".parquet"):
        table = read_parquet(path)
    elif path.name.endswith(".txt"):
        table = _read_lines(path)
    elif not path.name.endswith(SUFFIXES):
        raise LeakboardError(f"{path}: unknown kind of file; expected {', '.join(SUFFIXES)}")
    elif kind.endswith((".jsonl", ".json")):
        table = _read_json(path, kind.endswith(".jsonl"))
    else:
        table = _read_delimited(path, kind.endswith(".csv"), plain_tsv)
    if not table.names or not len(table):
        raise LeakboardError(f"{path}: no data rows below the header line")
    for name in table.names:
        try:
            visible(name)
        except ValueError as error:
            raise LeakboardError(f"{path}: the column '{plain(name)}' {error}") from error
    return table


def _read_delimited(path: Path, commas: bool, plain_tsv: bool) -> Table:
    data = read_bytes(path)
    if not (data[:PEEK].removeprefix(BOM).strip() or data.removeprefix(BOM).strip()):
        raise LeakboardError(f"{path}: the file is empty; expected a header line and data rows")
    numbers: list[int] = []
    try:
        dialect = Dialect("\t", False) if plain_tsv and not commas else _dialect(path, data, commas)
        reader = dialect.reader(_lines(data, newline=""))
        header = next(reader)
        check_size(path, 0, len(header))
        columns: list[list[str]] = [[] for _ in header]
        line, held = reader.line_num + 1, 0
        for row in reader:
            held += sum(map(getsizeof, row)) + PLACE * len(row) + NUMBER
            if held > content.MOST_HELD:
                check_held(f"{path}, line {line}", held)
            if row:  # Blank lines are no rows.
                if len(row) != len(header):
                    raise LeakboardError(
                        f"{path}, line {line}: {len(row)} fields, but the header has {len(header)}. "
                        f"{dialect.remedy}"
                    )
                for column, value in zip(columns, row, strict=True):
                    column.append(value)
                numbers.append(line)
                if not len(numbers) % CHECKED:
                    check_size(path, len(numbers), len(header))
            line = reader.line_num + 1
            if not row:
                check_number(path, line)
    except csv.Error as error:
        raise LeakboardError(
            f"{path}, line {reader.line_num}: {error}. {dialect.remedy}"
        ) from error
    except UnicodeDecodeError as error:
        raise _not_utf8(path, data) from error
    # Spreadsheets write a delimiter for each column that was ever used.
    while len(header) > 1 and not header[-1].strip() and not any(columns[-1]):
        header, columns = header[:-1], columns[:-1]
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise LeakboardError(f"{path}: the column '{plain(twice)}' occurs twice in the header line")
    rows = Rows.counted(f"{path}, line", numbers)
    return Table(str(path), dict(zip(header, columns, strict=True)), rows=rows)


def _dialect(path: Path, data: bytes, commas: bool) -> Dialect:
    csv.field_size_limit(LONGEST_FIELD)
    return detect_dialect(path, lambda: _lines(data, newline=""), commas, b'"' in data)


def _read_lines(path: Path) -> Table:
    data, lines, numbers, held = read_bytes(path), list[str](), list[int](), 0
    for number, line in _numbered(path, data):
        held += getsizeof(line) + PLACE + NUMBER
        check_held(f"{path}, line {number}", held)
        lines.append(line)
        numbers.append(number)
        if not len(lines) % CHECKED:
            check_size(path, len(lines), 1)
    if not lines:
        raise LeakboardError(f"{path}: the file is empty; expected one text per line")
    return Table(str(path), {"text": lines}, rows=Rows.counted(f"{path}, line", numbers))


def _numbered(path: Path, data: bytes) -> Iterator[tuple[int, str]]:
    """The non-blank lines, with their numbers."""
    try:
        for number, line in enumerate(_lines(data, newline=None), start=1):
            if line.strip():
                yield number, line.rstrip("\n")
            else:
                check_number(path, number)
    except UnicodeDecodeError as error:
        raise _not_utf8(path, data) from error


def _read_json(path: Path, lines: bool) -> Table:
    data = read_bytes(path)
    if not (data[:PEEK].removeprefix(BOM).strip() or data.removeprefix(BOM).strip()):
        raise LeakboardError(f"{path}: the file is empty; expected a JSON object on each line")
    whole = data[:PEEK].removeprefix(BOM).lstrip().startswith(b"[")
    found = (
        _records_of_list(path, data)
        if whole
        else (
            (number, _parsed(f"{path}, line {number}", line), _held_by(line))
            for number, line in _numbered(path, data)
        )
    )
    numbers, columns, held = list[int](), dict[str, list[Any]](), 0.0
    unit = "record" if whole else "line"
    for number, record, size in found:
        if not isinstance(record, dict):
            raise LeakboardError(
                f'{path}, {unit} {number}: expected a JSON object such as {{"text": …, "label": …}}'
            )
        held += size + PLACE * len(columns) + NUMBER
        check_held(f"{path}, {unit} {number}", held)
        for name in record.keys() - columns.keys():
            columns[name] = [None] * len(numbers)
        numbers.append(number)
        for name in record:
            columns[name].append(record[name])
        for name in columns.keys() - record.keys():
            columns[name].append(None)
        if not len(numbers) % CHECKED or len(columns) > len(record):
            check_size(path, len(numbers), len(columns))
    rows = Rows.counted(f"{path}, {unit}", numbers)
    return build_table(str(path), columns, rows)


def _held_by(text: str) -> int:
    """Estimated bytes that JSON takes as Python values; a record with one entry has 230, an empty list 60."""
    values = 60 * (text.count(",") + text.count(":")) + 60 * text.count("[")
    return getsizeof(text) + values + 230 * max(0, text.count("{") - 1)


def _records_of_list(path: Path, data: bytes) -> Iterator[tuple[int, Any, int]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_utf8(path, data) from error
    if len(data) > LARGEST_LIST:
        raise LeakboardError(
            f"{path}: a list of more than {LARGEST_LIST:,} bytes; write one object on each line (.jsonl)"
        )
    check_held(str(path), _held_by(text))
    records = _parsed(str(path), text)
    yield from ((number, record, 0) for number, record in enumerate(records, start=1))


def _parsed(where: str, text: str) -> Any:
    if len(text) > max(LONGEST_FIELD, LARGEST_LIST):
        raise LeakboardError(f"{where}: longer than {LONGEST_FIELD:,} characters; shorten it")
    if "\\u" in text and ESCAPED.search(text):
        _check_escapes(where, text)
    try:
        return json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise LeakboardError(
            f"{where}: not JSON ({error}); expected one object on each line, or a list of objects in [ ]"
        ) from error


def _check_escapes(where: str, text: str) -> None:
    try:
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise LeakboardError(
            f"{where}: contains half of a surrogate pair (\\ud…); write the text as UTF-8"
        ) from error
    except (ValueError, RecursionError):
        return  # reported as invalid JSON
    if re.search(r"(?<!\\)(?:\\\\)*\\u0000", text):
        raise LeakboardError(f"{where}: contains a NUL character; leave it out")


def _lines(data: bytes, newline: str | None) -> io.TextIOWrapper:
    """Text stream that decodes line by line, since a whole string may take four bytes per character."""
    return io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", newline=newline)


def _not_utf8(path: Path, data: bytes) -> LeakboardError:
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return LeakboardError(
            f"{path}, line {line}: not UTF-8 ({error.reason}); save the file as UTF-8"
        )
    raise AssertionError("a file that cannot be decoded line by line cannot be decoded at once")
