"""Tables of text: read from TSV, CSV or Parquet, with errors that name the file and the line."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakboard.bench.contracts import LeakboardError, did_you_mean, place, plain, visible
from leakboard.bench.tasks.content import byte_limit, check_size, read_bytes, too_large

BOM = b"\xef\xbb\xbf"
CHECKED = 10_000
"""Number of rows after which the size is checked."""
SUFFIXES = (".tsv", ".tsv.gz", ".csv", ".csv.gz", ".parquet", ".txt")


@dataclass(frozen=True)
class Table:
    """Columns of equal length; every value is text, and a missing one is empty."""

    where: str
    """The file or the hub's dataset, for messages."""
    columns: dict[str, list[str]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def column(self, name: str) -> list[str]:
        """The values of a column.

        Raises:
            LeakboardError: there is no such column.
        """
        if name not in self.columns:
            hint = did_you_mean(name, self.columns)
            raise LeakboardError(f"{self.where}: no column '{name}' in its header line. {hint}")
        return self.columns[name]

    def take(self, rows: Sequence[int]) -> Table:
        picked = {name: [values[i] for i in rows] for name, values in self.columns.items()}
        return Table(self.where, picked)

    def divided(self, by: str, split_of: dict[int, str], rest: str) -> dict[str, Table]:
        """Divide rows into splits by the bucket of a column's value; other buckets go to `rest`."""
        names = [split_of.get(bucket(value), rest) for value in self.column(by)]
        return {
            split: self.take([i for i, name in enumerate(names) if name == split])
            for split in (rest, *dict.fromkeys(split_of.values()))
        }


def normal(text: str) -> str:
    """Text in lower case with single spaces, by which texts are compared."""
    return " ".join(text.lower().split())


def fingerprint(text: str, purpose: str) -> int:
    """Hash of the normalised text; different purposes give independent numbers."""
    return int(hashlib.sha256(f"{purpose}|{normal(text)}".encode()).hexdigest()[:12], 16)


def bucket(text: str) -> int:
    """Bucket of a text, from 0 to 9, by which data without splits are divided."""
    return fingerprint(text, "split-v1") % 10


def find(folder: Path, split: str) -> Path | None:
    """The file of a split in a folder, or None.

    Raises:
        LeakboardError: there are two.
    """
    found = [path for suffix in SUFFIXES if place(path := folder / f"{split}{suffix}").is_file()]
    if len(found) > 1:
        names = " and ".join(path.name for path in found)
        raise LeakboardError(f"{folder}: {names} are both there for the split '{split}'; keep one")
    return found[0] if found else None


def read_table(path: Path) -> Table:
    """Read .tsv (no quoting), .csv (quoted if needed), either with .gz, .parquet, or .txt.

    A .txt file has no header: each non-blank line is a text, in the column `text`. Control characters are kept,
    since the tokeniser handles them; a NUL is an error.

    Raises:
        LeakboardError: the file is missing, unreadable, empty, not UTF-8, ragged, without rows, holds
            a NUL, or far more than a machine can hold.
    """
    path = place(path)
    if not path.is_file():
        raise LeakboardError(f"{plain(path)}: no such file")
    if path.name.endswith(".parquet"):
        table = _read_parquet(path)
    elif path.name.endswith(".txt"):
        table = _read_lines(path)
    elif path.name.endswith(SUFFIXES):
        table = _read_delimited(path, path.name.removesuffix(".gz").endswith(".csv"))
    else:
        raise LeakboardError(f"{path}: unknown kind of file; expected {', '.join(SUFFIXES)}")
    if not table.columns or not len(table):
        raise LeakboardError(f"{path}: no data rows below the header line")
    for name in table.columns:
        try:
            visible(name)
        except ValueError as error:
            raise LeakboardError(f"{path}: the column '{plain(name)}' {error}") from error
    return table


def _read_delimited(path: Path, commas: bool) -> Table:
    data = read_bytes(path)
    if not data.removeprefix(BOM).strip():
        raise LeakboardError(f"{path}: the file is empty; expected a header line and data rows")
    if commas:
        reader = csv.reader(_lines(data, newline=""), strict=True)
    else:
        reader = csv.reader(_lines(data, newline=""), delimiter="\t", quoting=csv.QUOTE_NONE)
    try:
        header = next(reader)
        check_size(path, 0, len(header))
        columns: list[list[str]] = [[] for _ in header]
        for row in filter(None, reader):  # Blank lines are no rows.
            if len(row) != len(header):
                raise LeakboardError(
                    f"{path}, line {reader.line_num}: {len(row)} fields, "
                    f"but the header has {len(header)}"
                )
            for column, value in zip(columns, row, strict=True):
                column.append(value)
            if not len(columns[0]) % CHECKED:
                check_size(path, len(columns[0]), len(header))
    except csv.Error as error:
        raise LeakboardError(f"{path}, line {reader.line_num}: {error}") from error
    except UnicodeDecodeError as error:
        raise _not_utf8(path, data) from error
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise LeakboardError(f"{path}: the column '{plain(twice)}' occurs twice in the header line")
    return Table(str(path), dict(zip(header, columns, strict=True)))


def _read_lines(path: Path) -> Table:
    data, lines = read_bytes(path), list[str]()
    try:
        for line in _lines(data, newline=None):
            if line.strip():
                lines.append(line.rstrip("\n"))
                if not len(lines) % CHECKED:
                    check_size(path, len(lines), 1)
    except UnicodeDecodeError as error:
        raise _not_utf8(path, data) from error
    if not lines:
        raise LeakboardError(f"{path}: the file is empty; expected a text on each line")
    return Table(str(path), {"text": lines})


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
    # Imported here, since pandas slows down the start of every command.
    import pandas as pd

    try:
        _check_parquet(path)
        frame = pd.read_parquet(path)
    except LeakboardError:
        raise
    except Exception as error:  # damaged files raise errors of many types
        raise LeakboardError(f"{path}: not a readable Parquet file ({error})") from error
    return Table(str(path), {str(name): _filled(frame[name]) for name in frame.columns})


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


def _filled(values: Any) -> list[str]:
    return ["" if gone else str(v) for v, gone in zip(values, values.isna(), strict=True)]
