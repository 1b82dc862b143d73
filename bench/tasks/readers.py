"""Readers of tables: delimited text, JSON, Parquet, Arrow, and lines of text. Errors name file and line."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from leakboard.bench.contracts import LeakboardError, place, plain, visible
from leakboard.bench.tasks.content import byte_limit, check_size, read_bytes, too_large
from leakboard.bench.tasks.quoting import Dialect, detect_dialect
from leakboard.bench.tasks.table import SUFFIXES, Rows, Table
from leakboard.bench.tasks.values import build_table

BOM = b"\xef\xbb\xbf"
CHECKED = 10_000
"""Number of rows after which the size is checked."""
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
        table = _read_parquet(path)
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
    if not data.removeprefix(BOM).strip():
        raise LeakboardError(f"{path}: the file is empty; expected a header line and data rows")
    numbers: list[int] = []
    try:
        dialect = Dialect("\t", False) if plain_tsv and not commas else _dialect(path, data, commas)
        reader = dialect.reader(_lines(data, newline=""))
        header = next(reader)
        check_size(path, 0, len(header))
        columns: list[list[str]] = [[] for _ in header]
        line = reader.line_num + 1
        for row in reader:
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
    except csv.Error as error:
        raise LeakboardError(
            f"{path}, line {reader.line_num}: {error}. {dialect.remedy}"
        ) from error
    except UnicodeDecodeError as error:
        raise _not_utf8(path, data) from error
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise LeakboardError(f"{path}: the column '{plain(twice)}' occurs twice in the header line")
    rows = Rows.counted(f"{path}, line", numbers)
    return Table(str(path), dict(zip(header, columns, strict=True)), rows=rows)


def _dialect(path: Path, data: bytes, commas: bool) -> Dialect:
    csv.field_size_limit(LONGEST_FIELD)
    return detect_dialect(path, lambda: _lines(data, newline=""), commas, b'"' in data)


def _read_lines(path: Path) -> Table:
    data, lines, numbers = read_bytes(path), list[str](), list[int]()
    for number, line in _numbered(path, data):
        lines.append(line)
        numbers.append(number)
        if not len(lines) % CHECKED:
            check_size(path, len(lines), 1)
    if not lines:
        raise LeakboardError(f"{path}: the file is empty; expected a text on each line")
    return Table(str(path), {"text": lines}, rows=Rows.counted(f"{path}, line", numbers))


def _numbered(path: Path, data: bytes) -> Iterator[tuple[int, str]]:
    """The non-blank lines, with their numbers."""
    try:
        for number, line in enumerate(_lines(data, newline=None), start=1):
            if line.strip():
                yield number, line.rstrip("\n")
    except UnicodeDecodeError as error:
        raise _not_utf8(path, data) from error


def _read_json(path: Path, lines: bool) -> Table:
    data = read_bytes(path)
    if not data.removeprefix(BOM).strip():
        raise LeakboardError(f"{path}: the file is empty; expected a JSON object on each line")
    whole = data.removeprefix(BOM).lstrip().startswith(b"[")
    found = (
        _records_of_list(path, data)
        if whole
        else (
            (number, _parsed(f"{path}, line {number}", line))
            for number, line in _numbered(path, data)
        )
    )
    records, numbers, names = list[dict[str, Any]](), list[int](), dict[str, None]()
    unit = "record" if whole else "line"
    for number, record in found:
        if not isinstance(record, dict):
            raise LeakboardError(
                f'{path}, {unit} {number}: expected a JSON object such as {{"text": …, "label": …}}'
            )
        records.append(record)
        numbers.append(number)
        names.update(dict.fromkeys(record))
        if not len(records) % CHECKED or len(names) > len(record):
            check_size(path, len(records), len(names))
    rows = Rows.counted(f"{path}, {unit}", numbers)
    columns = {name: [record.get(name) for record in records] for name in names}
    return build_table(str(path), columns, rows)


def _records_of_list(path: Path, data: bytes) -> Iterator[tuple[int, Any]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_utf8(path, data) from error
    if len(data) > LARGEST_LIST:
        raise LeakboardError(
            f"{path}: a list of more than {LARGEST_LIST:,} bytes; write one object on each line (.jsonl)"
        )
    yield from enumerate(_parsed(str(path), text), start=1)


def _parsed(where: str, text: str) -> Any:
    if len(text) > max(LONGEST_FIELD, LARGEST_LIST):
        raise LeakboardError(f"{where}: longer than {LONGEST_FIELD:,} characters; shorten it")
    if "\\u" in text and ESCAPED.search(text):
        _check_escapes(where, text)
    try:
        return json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise LeakboardError(
            f"{where}: not JSON ({error}); expected one object on each line"
        ) from error


def _check_escapes(where: str, text: str) -> None:
    try:
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise LeakboardError(
            f"{where}: holds half a character (\\ud…); write the text as UTF-8"
        ) from error
    except (ValueError, RecursionError):
        return  # reported as invalid JSON
    if re.search(r"(?<!\\)(?:\\\\)*\\u0000", text):
        raise LeakboardError(f"{where}: holds a NUL, as no text does; leave it out")


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
    raise AssertionError("what cannot be decoded line by line cannot be decoded at once")


def _read_parquet(path: Path) -> Table:
    try:
        from pyarrow import parquet

        _check_parquet(path)
        table = parquet.ParquetFile(path).read()
    except LeakboardError:
        raise
    except Exception as error:  # damaged files raise errors of many types
        raise LeakboardError(f"{path}: not a readable Parquet file ({error})") from error
    return arrow_table(str(path), table)


def arrow_table(where: str, table: Any) -> Table:
    """Convert an Arrow table; class numbers are replaced by names, if its metadata have them.

    Raises:
        LeakboardError: see `build_table`; a column occurs twice.
    """
    import pyarrow as pa

    names = [str(name) for name in table.column_names]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise LeakboardError(f"{where}: the column '{plain(twice)}' occurs twice")
    rows = Rows.counted(f"{where}, data row", range(1, table.num_rows + 1))
    # pandas stores an index as such a column.
    kept = [i for i, name in enumerate(names) if not re.fullmatch(r"__index_level_\d+__", name)]
    columns = {}
    for i in kept:
        column = table.column(i)
        if pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type):
            column = column.cast(pa.string())
        columns[names[i]] = column.to_pylist()
    features = _hub_features((table.schema.metadata or {}).get(b"huggingface"))
    return build_table(where, columns, rows, features)


def _hub_features(metadata: bytes | None) -> dict[str, Sequence[str]]:
    try:
        features = json.loads(metadata or b"{}")["info"]["features"]
        return class_names(features)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def class_names(features: dict[str, Any]) -> dict[str, Sequence[str]]:
    """Class names by column of class numbers or lists of them, from `features` in the format of `datasets`."""
    found = {}
    for name, feature in features.items():
        if isinstance(feature, list) and len(feature) == 1:  # a list in older versions
            feature = {"feature": feature[0]}
        inner = feature.get("feature", feature) if isinstance(feature, dict) else {}
        if isinstance(inner, dict) and inner.get("_type") == "ClassLabel":
            found[name] = inner["names"]
    return found


def _check_parquet(path: Path) -> None:
    """Check the unpacked size of a file, in which one stored value may fill a million rows."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import parquet

    size = path.stat().st_size
    most, total = byte_limit(size), 0
    with parquet.ParquetFile(path) as file:
        check_size(path, file.metadata.num_rows, file.metadata.num_columns)
        schema = file.schema_arrow
    texts = [field.name for field in schema if _is_text(pa.types, field.type)]
    with parquet.ParquetFile(path, read_dictionary=texts) as file:
        for batch in file.iter_batches(CHECKED):
            for column in batch.columns:
                if isinstance(column, pa.DictionaryArray):
                    lengths = pc.binary_length(column.dictionary).take(column.indices)
                    total += pc.sum(lengths).as_py() or 0
                else:
                    total += column.nbytes
            if total > most:
                raise too_large(path, size, most, packed=True)


def _is_text(types: Any, of: Any) -> bool:
    return any(
        known(of)
        for known in (
            types.is_string,
            types.is_large_string,
            types.is_binary,
            types.is_large_binary,
        )
    )
