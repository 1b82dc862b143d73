"""Tasks from users' files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from leakboard.bench.contracts import LeakboardError, did_you_mean, place, plain
from leakboard.bench.tasks.assemble import Attribute, Layout, assemble
from leakboard.bench.tasks.catalogue import CATALOGUE, GENERATED
from leakboard.bench.tasks.table import SUFFIXES, Table, find, read_table
from leakboard.bench.tasks.task import Task

TENTHS = {0: "test", 1: "dev"}
"""Splits of a single file: 80/10/10 by the hash of the text, so that equal texts stay together."""


class SplitFiles(BaseModel):
    """One file per split."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    train: Path
    dev: Path
    test: Path | None = None
    auxiliary: Path | None = None


class UserTask(BaseModel):
    """A task that a suite describes by its file and columns."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: Annotated[str, Field(max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
    """Name: letters, digits, '_', '.' and '-'; not the name of a known task."""
    path: Path | SplitFiles
    """A .tsv (no quoting), .csv or .parquet file, or a .txt with a text on each line, which is cut
    80/10/10; a folder with files named train, dev and, if there are any, test and auxiliary; or a
    mapping from split to file."""
    text: str = "text"
    """Column of the text."""
    text2: str | None = None
    """Column of the second text of a pair."""
    label: str | None = "label"
    """Column of the label. With null, or if a file has only texts, the task is language modelling."""
    attributes: tuple[str, ...] = ()
    """Columns of private attributes of the author: few values each, empty if unknown."""
    author: str | None = None
    """Column that identifies the author of each text, for `plant: {per_author: …}`."""

    @field_validator("name")
    @classmethod
    def _free(cls, name: str) -> str:
        if name in CATALOGUE or name in GENERATED:
            raise ValueError(f"'{name}' is the name of a known task; choose another one")
        return name

    def layout(self, train: Table) -> Layout:
        """The columns of the task.

        Raises:
            LeakboardError: the column of labels is missing.
        """
        label = self.label
        if list(train.columns) == [self.text] and "label" not in self.model_fields_set:
            label = None
        if label and label not in train.columns and self.text in train.columns:
            raise LeakboardError(
                f"{train.where}: no column '{label}' in its header line. "
                f"{did_you_mean(label, train.columns)} For language modelling write label: null"
            )
        attributes = tuple(Attribute(column, column) for column in self.attributes)
        return Layout(self.text, self.text2, label, attributes=attributes, author=self.author)


def load_user_task(task: UserTask, base: Path) -> Task:
    """Load the task's files; relative paths refer to `base`.

    Raises:
        LeakboardError: a file or column is missing or wrong, or a single file is too small to cut.
    """
    if isinstance(task.path, SplitFiles):
        named = task.path.model_dump(exclude_none=True)
        tables = {split: read_table(base / path) for split, path in named.items()}
        source = f"files: {task.path.train}"
    else:
        path = place(base / task.path)
        tables = read_folder(path) if path.is_dir() else _cut(path, task.text)
        source = f"file: {task.path}"
    return assemble(task.name, tables, task.layout(tables["train"]), source)


def read_folder(folder: Path, names: Mapping[str, str] | None = None) -> dict[str, Table]:
    """The tables of a folder with one file per split; test and auxiliary are optional.

    Args:
        names: split → name of its file, if they differ; only these splits are read then.

    Raises:
        LeakboardError: the folder, train or dev is missing, or a file is wrong.
    """
    folder = place(folder)
    if not folder.is_dir():
        raise LeakboardError(f"{plain(folder)}: no such folder")
    names = names or {split: split for split in ("train", "dev", "test", "auxiliary")}
    found = {split: find(folder, name) for split, name in names.items()}
    for split in ("train", "dev"):
        if found[split] is None:
            expected = ", ".join(names[split] + suffix for suffix in SUFFIXES)
            raise LeakboardError(
                f"{folder}: no file for the split '{split}'; expected one of {expected}"
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
