"""Loading of users' data: the tables of each split, labels in one notation, and splits that are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from leakboard.bench.contracts import (
    LeakboardError,
    did_you_mean,
    place,
    plain,
)
from leakboard.bench.tasks.assemble import Layout, assemble
from leakboard.bench.tasks.chat import ANSWER, OPENING, PROMPT, chat_columns, chat_table
from leakboard.bench.tasks.frames import (
    ADDRESS,
    frame_table,
    is_frame,
    is_saved,
    read_address,
    read_saved,
)
from leakboard.bench.tasks.labels import cut_by_text, with_plain_labels
from leakboard.bench.tasks.readers import read_table
from leakboard.bench.tasks.table import SPELLINGS, SUFFIXES, Table, find, join_tables
from leakboard.bench.tasks.targets import with_label_sets, with_numbers
from leakboard.bench.tasks.task import Task
from leakboard.bench.tasks.user_task import SPLITS, SplitFiles, UserTask

TENTHS = {0: "test", 1: "dev"}
"""Splits of a single file: 80/10/10 by the hash of the text, so that equal texts stay together."""
GLOB = "*?["


def load_user_task(task: UserTask, base: Path) -> Task:
    """Load the data of a task; relative paths refer to `base`.

    Raises:
        LeakboardError: a file or column is missing or wrong, or a single file is too small to cut.
    """
    tables, source = _tables(task, base)
    first, notes = next(iter(tables.values())), list[str]()
    given = task.model_fields_set & {"text", "text2", "label"} or task.text in first.names
    columns = None if given else chat_columns(first)
    layout = task.layout(first)
    if columns:
        conversations = sum(map(len, tables.values()))
        tables = {split: chat_table(table, columns) for split, table in tables.items()}
        notes.append(
            f"chats of {', '.join(columns)}: {conversations:,} conversations have {sum(map(len, tables.values())):,} "
            "answers, each trained on with the messages before it as prompt"
        )
        layout = Layout(PROMPT, ANSWER, None, attributes=layout.attributes, author=layout.author)
    tables = _with_labels(task, tables, layout)
    by_class = layout.label if layout.objective == "classification" else None
    tables, cut = _with_splits(tables, OPENING if columns else layout.text, by_class)
    return replace(
        assemble(task.name, tables, layout, source, [*notes, *cut]), utility=task.utility, own=True
    )


def _with_labels(task: UserTask, tables: Mapping[str, Table], layout: Layout) -> dict[str, Table]:
    """The tables with labels in the notation that `assemble` expects."""
    if layout.label is None:
        return dict(tables)
    for column in task.label if isinstance(task.label, tuple) else (layout.label,):
        tables = _with_column(tables, column, layout.text)
    if layout.objective == "regression":
        return with_numbers(tables, layout.label)
    if layout.objective == "multilabel":
        return with_label_sets(tables, task.label or layout.label, layout.label)
    return with_plain_labels(
        {split: _with_single(table, layout.label) for split, table in tables.items()}, layout.label
    )


def _with_single(table: Table, column: str) -> Table:
    """The table with a column of labels for a field of records, and for lists of at most one label."""
    lists = table.nested.get(column, [])
    if lists and all(
        value is None or (isinstance(value, list) and len(value) < 2) for value in lists
    ):
        labels = ["" if not value or value[0] is None else str(value[0]) for value in lists]
        nested = {name: values for name, values in table.nested.items() if name != column}
        return replace(table.with_columns({column: labels}), nested=nested)
    return table if column in table.columns else table.with_columns({column: table.column(column)})


def _with_column(tables: Mapping[str, Table], column: str, text: str) -> Mapping[str, Table]:
    """The tables, with an empty column of labels for a test split that has none."""
    labelled = dict(tables)
    for split, table in tables.items():
        if text not in table.names:
            table.column(text)
        if split == "test" and column not in table.names:
            labelled[split] = table.with_columns({column: [""] * len(table)})
    return labelled


def _tables(task: UserTask, base: Path) -> tuple[dict[str, Table], str]:
    """The tables by split, with the key "" for undivided data, and their origin."""
    if isinstance(task.path, SplitFiles):
        named = task.path.splits
        tables = {
            split: _read(each, base, f"{task.name}, {split}") for split, each in named.items()
        }
        train = task.path.train
        return tables, f"frames: {task.name}" if is_frame(train) else f"files: {_first(train)}"
    if is_frame(task.path):
        return {"": frame_table(task.path, task.name)}, f"frame: {task.name}"
    if isinstance(task.path, Path) and task.path.as_posix().startswith(ADDRESS):
        return _by_split(read_address(task.path), str(task.path)), f"hub: {task.path}"
    source = f"file: {_first(task.path)}"
    if isinstance(task.path, Path):
        folder = place(base / task.path)
        if folder.is_dir():
            tables = read_saved(folder) if is_saved(folder) else _read_user_folder(folder)
            return _by_split(tables, plain(folder)), source
    return {"": _read(task.path, base, task.name)}, source


def _first(files: Any) -> Any:
    return files[0] if isinstance(files, tuple) else files


def _read(files: Any, base: Path, name: str) -> Table:
    """Read files, patterns of files, or a frame."""
    if is_frame(files):
        return frame_table(files, name)
    paths = list[Path]()
    for file in files if isinstance(files, tuple) else (files,):
        path = place(base / file)
        if any(sign in path.name for sign in GLOB) and not path.exists():
            matching = sorted(path.parent.glob(path.name))
            if not matching:
                raise LeakboardError(f"{plain(path)}: no such file")
            paths += matching
        else:
            paths.append(path)
    return join_tables([read_table(path) for path in paths])


def _by_split(tables: Mapping[str, Table], where: str) -> dict[str, Table]:
    """The tables by the names train, dev, test and auxiliary; other names are an error."""
    ours = {name: split for split, names in SPELLINGS.items() for name in names}
    by_split = dict[str, Table]()
    for name, table in tables.items():
        split = ours.get(name, name)
        if split not in ("", *SPLITS):
            raise LeakboardError(
                f"{where}: unknown split '{plain(name, 80)}'. {did_you_mean(name, [*SPLITS, *ours])} Name the "
                "splits in a mapping: path: {train: …, dev: …}"
            )
        if split in by_split:
            raise LeakboardError(f"{where}: has several names for the split '{split}'; keep one")
        by_split[split] = table
    if not by_split.keys() & {"", "train"}:
        raise LeakboardError(f"{where}: no split 'train'; it has {', '.join(tables)}")
    return by_split


def _read_user_folder(folder: Path) -> dict[str, Table]:
    files = {split: find(folder, split, shards=True) for split in SPLITS}
    if not any(files.values()) and (folder / "data").is_dir():
        files = {split: find(folder / "data", split, shards=True) for split in SPLITS}
    _check_splits(folder, files, {split: SPELLINGS.get(split, (split,)) for split in SPLITS})
    return {
        split: join_tables([read_table(path) for path in paths])
        for split, paths in files.items()
        if paths
    }


def read_folder(folder: Path, names: Mapping[str, str] | None = None) -> dict[str, Table]:
    """The tables of a folder with one file per split; test and auxiliary are optional.

    A quote in a .tsv is a character like others.

    Args:
        names: split → name of its file, if they differ; only these splits are read then.

    Raises:
        LeakboardError: the folder, train or dev is missing, or a file is wrong.
    """
    folder = place(folder)
    if not folder.is_dir():
        raise LeakboardError(f"{plain(folder)}: no such folder")
    names = names or {split: split for split in SPLITS}
    files = {split: find(folder, name) for split, name in names.items()}
    _check_splits(folder, files, {split: (name,) for split, name in names.items()}, dev=True)
    return {split: read_table(paths[0], plain_tsv=True) for split, paths in files.items() if paths}


def _check_splits(
    folder: Path,
    files: Mapping[str, Sequence[Path]],
    names: Mapping[str, Sequence[str]],
    dev: bool = False,
) -> None:
    for split in ("train", "dev") if dev or not files["test"] else ("train",):
        if not files[split]:
            expected = ", ".join(name + suffix for name in names[split] for suffix in SUFFIXES)
            raise LeakboardError(
                f"{folder}: no file for the split '{split}'; expected one of {expected}"
            )


def _with_splits(
    tables: dict[str, Table], text: str, label: str | None
) -> tuple[dict[str, Table], list[str]]:
    """The tables with a split `dev`, and a note about the division."""
    if "" in tables:
        table = tables[""]
        note = "the data are divided into train, dev and test, 80/10/10 by the hash of the text"
        tenths = TENTHS
    elif "dev" not in tables:
        table = tables["train"]
        note = "there is no split dev; a tenth of train, by the hash of the text, is used"
        tenths = {1: "dev"}
    else:
        return tables, []
    cut = cut_by_text(table, text, label, tenths, "train")
    for split, part in cut.items():
        if not len(part):
            raise LeakboardError(
                f"{table.where}: {len(table)} rows are too few: none fell into {split}; "
                "expected more rows, or a file for each split"
            )
    return {**{split: t for split, t in tables.items() if split}, **cut}, [note]
