"""Tables of text: read from TSV, CSV or Parquet, with errors that name the file and the line."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.contracts import LeakboardError, did_you_mean

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
        """Cut into splits by the bucket of a column's value; buckets not named go to `rest`."""
        names = [split_of.get(bucket(value), rest) for value in self.column(by)]
        return {
            split: self.take([i for i, name in enumerate(names) if name == split])
            for split in (rest, *dict.fromkeys(split_of.values()))
        }


def normal(text: str) -> str:
    """Lower case, single spaces: texts that agree in this count as the same."""
    return " ".join(text.lower().split())


def fingerprint(text: str, purpose: str) -> int:
    """A number that depends on the normalised text; another purpose gives unrelated numbers."""
    return int(hashlib.sha256(f"{purpose}|{normal(text)}".encode()).hexdigest()[:12], 16)


def bucket(text: str) -> int:
    """0 to 9: the tenth of the data that a text falls into; data without splits are cut by it."""
    return fingerprint(text, "split-v1") % 10


def find(folder: Path, split: str) -> Path | None:
    """The file of a split in a folder, or None.

    Raises:
        LeakboardError: there are two.
    """
    found = [path for suffix in SUFFIXES if (path := folder / f"{split}{suffix}").is_file()]
    if len(found) > 1:
        names = " and ".join(path.name for path in found)
        raise LeakboardError(f"{folder}: {names} are both there for the split '{split}'; keep one")
    return found[0] if found else None


def read_table(path: Path) -> Table:
    """Reads .tsv (no quoting), .csv (quoted where needed), either with .gz, .parquet, or .txt.

    A .txt file has no header: each line that is not blank is a text, in the column `text`.

    Raises:
        LeakboardError: the file is missing, unreadable, empty, not UTF-8, ragged or without rows.
    """
    if not path.is_file():
        raise LeakboardError(f"{path}: no such file")
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
    return table


def _read_delimited(path: Path, commas: bool) -> Table:
    text = _decoded(path)
    if not text.strip():
        raise LeakboardError(f"{path}: the file is empty; expected a header line and data rows")
    lines = io.StringIO(text, newline="")
    if commas:
        reader = csv.reader(lines, strict=True)
    else:
        reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    rows = []
    try:
        header = next(reader)
        for row in filter(None, reader):  # Blank lines are no rows.
            if len(row) != len(header):
                raise LeakboardError(
                    f"{path}, line {reader.line_num}: {len(row)} fields, "
                    f"but the header has {len(header)}"
                )
            rows.append(row)
    except csv.Error as error:
        raise LeakboardError(f"{path}, line {reader.line_num}: {error}") from error
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise LeakboardError(f"{path}: the column '{twice}' occurs twice in the header line")
    return Table(str(path), {name: [row[i] for row in rows] for i, name in enumerate(header)})


def _read_lines(path: Path) -> Table:
    lines = [line for line in io.StringIO(_decoded(path), newline=None) if line.strip()]
    if not lines:
        raise LeakboardError(f"{path}: the file is empty; expected a text on each line")
    return Table(str(path), {"text": [line.rstrip("\n") for line in lines]})


def _decoded(path: Path) -> str:
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise LeakboardError(f"{path}: cannot be read ({error})") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise LeakboardError(
            f"{path}, line {line}: not UTF-8 ({error.reason}); save the file as UTF-8"
        ) from error


def _read_parquet(path: Path) -> Table:
    # Imported here because pandas would slow the start of every command that reads no Parquet.
    import pandas as pd

    try:
        frame = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise LeakboardError(f"{path}: not a readable Parquet file ({error})") from error
    return Table(str(path), {str(name): _filled(frame[name]) for name in frame.columns})


def _filled(values: Any) -> list[str]:
    return ["" if gone else str(v) for v, gone in zip(values, values.isna(), strict=True)]
