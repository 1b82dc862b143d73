"""A task from the user's own file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from bench.errors import LeakboardError
from bench.tasks import Task
from bench.tasks.assemble import Attribute, Layout, assemble
from bench.tasks.catalogue import CATALOGUE, GENERATED
from bench.tasks.table import SUFFIXES, Table, find, read_table

TENTHS = {0: "test", 1: "dev"}
"""A single file is cut 80/10/10 by the hash of the text, so that equal texts stay together."""


class SplitFiles(BaseModel):
    """One file per split."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    train: Path
    dev: Path
    test: Path | None = None
    auxiliary: Path | None = None


class OwnTask(BaseModel):
    """A task that a suite describes: where the file is and which column is what."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
    """Letters, digits, '_', '.' and '-'; not the name of a known task."""
    path: Path | SplitFiles
    """A .tsv (no quoting), .csv or .parquet file, which is cut 80/10/10; a folder with files named
    train, dev and, if there are any, test and auxiliary; or a mapping from split to file."""
    text: str = "text"
    """Column of the text."""
    text2: str | None = None
    """Column of the second text of a pair."""
    label: str = "label"
    """Column of the label."""
    attributes: tuple[str, ...] = ()
    """Columns of private attributes of the author: few values each, empty where unknown."""

    @field_validator("name")
    @classmethod
    def _free(cls, name: str) -> str:
        if name in CATALOGUE or name in GENERATED:
            raise ValueError(f"'{name}' is the name of a known task; choose another one")
        return name

    @property
    def layout(self) -> Layout:
        attributes = tuple(Attribute(column, column) for column in self.attributes)
        return Layout(self.text, self.text2, self.label, attributes=attributes)


def load_own(task: OwnTask, base: Path) -> Task:
    """Reads the task's files; relative paths start at `base`.

    Raises:
        LeakboardError: a file or column is missing or wrong, or a single file is too small to cut.
    """
    if isinstance(task.path, SplitFiles):
        named = task.path.model_dump(exclude_none=True)
        tables = {split: read_table(base / path) for split, path in named.items()}
        return assemble(task.name, tables, task.layout, f"files: {task.path.train}")
    path = base / task.path
    tables = read_folder(path) if path.is_dir() else _cut(path, task.text)
    return assemble(task.name, tables, task.layout, f"file: {task.path}")


def read_folder(folder: Path) -> dict[str, Table]:
    """The tables of a folder with files named after the splits; test and auxiliary may be absent.

    Raises:
        LeakboardError: the folder, train or dev is missing, or a file is wrong.
    """
    if not folder.is_dir():
        raise LeakboardError(f"{folder}: no such folder")
    found = {split: find(folder, split) for split in ("train", "dev", "test", "auxiliary")}
    for split in ("train", "dev"):
        if found[split] is None:
            names = ", ".join(split + suffix for suffix in SUFFIXES)
            raise LeakboardError(
                f"{folder}: no file for the split '{split}'; expected one of {names}"
            )
    return {split: read_table(path) for split, path in found.items() if path}


def _cut(path: Path, text: str) -> dict[str, Table]:
    table = read_table(path)
    tables = table.divided(text, TENTHS, rest="train")
    for split, part in tables.items():
        if not len(part):
            raise LeakboardError(
                f"{path}: {len(table)} rows are too few, none fell into {split}; "
                "expected more rows, or a file for each split"
            )
    return tables
