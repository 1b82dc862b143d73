"""Tables of text: columns of equal length, and the place of each row in its file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from leakboard.bench.contracts import Ints, LeakboardError, did_you_mean, place

SUFFIXES = (
    *(".tsv", ".tsv.gz", ".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".json", ".parquet", ".txt"),
)


@dataclass(frozen=True)
class Rows:
    """Places of the rows of a table.

    Attributes:
        names: such as 'train.csv, line'.
        name: [n] indices into `names`.
        number: [n] line numbers, or row numbers from 1.
    """

    names: tuple[str, ...]
    name: Ints
    number: Ints

    @classmethod
    def counted(cls, name: str, numbers: Sequence[int]) -> Rows:
        number = np.array(numbers, np.int64)
        return cls((name,), np.zeros(len(number), np.int64), number)

    def take(self, rows: Sequence[int]) -> Rows:
        at = np.array(rows, np.int64)
        return Rows(self.names, self.name[at], self.number[at])

    def __getitem__(self, row: int) -> str:
        return f"{self.names[self.name[row]]} {self.number[row]}"


@dataclass(frozen=True)
class Table:
    """Columns of equal length; every value is text, and a missing one is empty."""

    where: str
    """The file or the hub's dataset, for messages."""
    columns: dict[str, list[str]]
    nested: dict[str, list[Any]] = field(default_factory=dict)
    """Columns of lists or records, such as the messages of a chat."""
    rows: Rows | None = None
    """None if rows are numbered from 1."""

    def __len__(self) -> int:
        return len(next(iter((self.columns or self.nested).values())))

    @property
    def names(self) -> list[str]:
        """All columns."""
        return [*self.columns, *self.nested]

    @property
    def known(self) -> list[str]:
        """All columns, and the fields of the first record in each."""
        firsts = {name: next(filter(None, v), None) for name, v in self.nested.items()}
        inner = [f"{name}.{key}" for name, v in firsts.items() if isinstance(v, dict) for key in v]
        return [*self.names, *inner]

    def column(self, name: str) -> list[str]:
        """The values of a column, or of a field of records and lists, such as `data.text` or `labels.0`.

        Raises:
            LeakboardError: there is no such column, or it holds lists.
        """
        if (found := self._field(name)) is not None:
            return found
        if name in self.nested:
            row, value = next(
                (row, value)
                for row, value in enumerate(self.nested[name])
                if isinstance(value, list | dict)
            )
            kind, remedy = "a list", "For several labels per text write objective: multilabel"
            if isinstance(value, dict):
                field_ = next(iter(value), "FIELD")
                kind, remedy = "a record", f"Name one of its fields, such as '{name}.{field_}'"
            raise LeakboardError(
                f"{self.place(row)}: column '{name}' holds {kind}; expected one value in each row. {remedy}"
            )
        if name not in self.columns:
            hint = did_you_mean(name, self.known)
            raise LeakboardError(f"{self.where}: no column '{name}' in its header line. {hint}")
        return self.columns[name]

    def _field(self, name: str) -> list[str] | None:
        """The values of a field inside of a nested column, empty where a row has none; None if there is no such."""
        head, *path = name.split(".")
        if not path or head not in self.nested:
            return None
        values = [_inside(value, path) for value in self.nested[head]]
        if all(value is None for value in values):
            return None
        for row, value in enumerate(values):
            if isinstance(value, list | dict):
                raise LeakboardError(
                    f"{self.place(row)}: '{name}' holds a {'list' if isinstance(value, list) else 'record'}; expected "
                    "one value in each row"
                )
        return ["" if value is None else str(value) for value in values]

    def place(self, row: int) -> str:
        """Place of a row, which is counted from 0: file and line, or the number of the row."""
        return f"{self.where}, data row {row + 1}" if self.rows is None else self.rows[row]

    def take(self, rows: Sequence[int]) -> Table:
        picked, nested = (
            {name: [values[i] for i in rows] for name, values in columns.items()}
            for columns in (self.columns, self.nested)
        )
        numbers = self.rows or Rows.counted(f"{self.where}, data row", range(1, len(self) + 1))
        return Table(self.where, picked, nested, numbers.take(rows))

    def with_columns(self, columns: Mapping[str, list[str]]) -> Table:
        """The table with some columns replaced or added."""
        return Table(self.where, {**self.columns, **columns}, self.nested, self.rows)

    def divided(self, by: str, split_of: dict[int, str], rest: str) -> dict[str, Table]:
        """Divide rows into splits by the bucket of a column's value; other buckets go to `rest`."""
        names = [split_of.get(bucket(value), rest) for value in self.column(by)]
        return self.cut(names, (rest, *dict.fromkeys(split_of.values())))

    def cut(self, names: Sequence[str], splits: Sequence[str]) -> dict[str, Table]:
        """Divide rows into splits, given the split of each row."""
        return {
            split: self.take([i for i, name in enumerate(names) if name == split])
            for split in splits
        }


def _inside(value: Any, path: Sequence[str]) -> Any:
    """The value at a path of keys of records and places in lists; None if there is none."""
    for key in path:
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def join_tables(tables: Sequence[Table]) -> Table:
    """Join the rows of several files.

    Raises:
        LeakboardError: their columns differ.
    """
    first, *others = tables
    if not others:
        return first
    for other in others:
        if set(other.names) != set(first.names) or set(other.nested) != set(first.nested):
            raise LeakboardError(
                f"{other.where}: has the columns {', '.join(other.names)}, and {first.where} has "
                f"{', '.join(first.names)}; files of one split have the same columns"
            )
    columns, nested = (
        {
            name: [v for table in tables for v in getattr(table, kind)[name]]
            for name in getattr(first, kind)
        }
        for kind in ("columns", "nested")
    )
    rows = [
        table.rows or Rows.counted(f"{table.where}, data row", range(1, len(table) + 1))
        for table in tables
    ]
    starts = np.cumsum([0, *(len(each.names) for each in rows)])
    joined = Rows(
        tuple(name for each in rows for name in each.names),
        np.concatenate([each.name + start for each, start in zip(rows, starts[:-1], strict=True)]),
        np.concatenate([each.number for each in rows]),
    )
    return Table(f"{first.where} and {len(others)} more", columns, nested, joined)


def normal(text: str) -> str:
    """Text in lower case with single spaces, by which texts are compared."""
    return " ".join(text.lower().split())


def fingerprint(text: str, purpose: str) -> int:
    """Hash of the normalised text; different purposes give independent numbers."""
    return int(hashlib.sha256(f"{purpose}|{normal(text)}".encode()).hexdigest()[:12], 16)


def bucket(text: str) -> int:
    """Bucket of a text, from 0 to 9, by which data without splits are divided."""
    return fingerprint(text, "split-v1") % 10


SPELLINGS = {"dev": ("dev", "validation", "valid", "val")}
"""Names of the file of a split."""


def find(folder: Path, split: str, shards: bool = False) -> list[Path]:
    """The files of a split in a folder.

    Args:
        shards: True to include the shards of the hub, such as train-00000-of-00002.parquet.

    Raises:
        LeakboardError: there are several that are not shards.
    """
    names = SPELLINGS.get(split, (split,)) if shards else (split,)
    paths = (folder / f"{name}{suffix}" for name in names for suffix in SUFFIXES)
    found = [path for path in paths if place(path).is_file()]
    if len(found) > 1:
        files = " and ".join(path.name for path in found)
        raise LeakboardError(f"{folder}: {files} both exist for the split '{split}'; keep one")
    if found or not shards:
        return found
    parts = (path for name in names for path in folder.glob(f"{name}-*-of-*"))
    return sorted(path for path in parts if path.name.endswith(SUFFIXES))
