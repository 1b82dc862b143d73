"""Tasks from users' data: files, folders, frames, and datasets of the hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    SkipValidation,
    Tag,
    field_validator,
    model_validator,
)

from leakboard.bench.contracts import (
    LeakboardError,
    Objective,
    UtilityMetric,
    did_you_mean,
    metric_mismatch,
    place,
    plain,
)
from leakboard.bench.tasks.assemble import Attribute, Layout, assemble
from leakboard.bench.tasks.catalogue import CATALOGUE, GENERATED
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

FASTTEXT = "__label__"
"""Start of a line with a label."""
LABELS = "<labels>"
"""Column of the labels that stand in several columns of a file."""
TENTHS = {0: "test", 1: "dev"}
"""Splits of a single file: 80/10/10 by the hash of the text, so that equal texts stay together."""
SPLITS = ("train", "dev", "test", "auxiliary")
GLOB = "*?["


def _kind(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "list"
    if is_frame(value):
        return "frame"
    return "splits" if isinstance(value, Mapping | SplitFiles) else "path"


Frame = Annotated[SkipValidation[Any], Tag("frame")]
Files = Annotated[
    Annotated[Path, Tag("path")]
    | Annotated[tuple[Path, ...], Field(min_length=1), Tag("list")]
    | Frame,
    Discriminator(lambda value: "path" if _kind(value) == "splits" else _kind(value)),
]


class SplitFiles(BaseModel):
    """Data of each split: a file, a list of files, a pattern such as `train-*.jsonl`, or, in Python, a frame."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, populate_by_name=True
    )

    train: Files
    dev: Files = Field(validation_alias=AliasChoices(*SPELLINGS["dev"]))
    test: Files | None = None
    auxiliary: Files | None = None

    @property
    def splits(self) -> dict[str, Any]:
        """The data by split."""
        return {name: found for name in SPLITS if (found := getattr(self, name)) is not None}


class UserTask(BaseModel):
    """A task that a suite describes by its data and columns."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, arbitrary_types_allowed=True
    )

    name: Annotated[str, Field(max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
    """Name: letters, digits, '_', '.' and '-'; not the name of a known task."""
    path: Annotated[
        Annotated[Path, Tag("path")]
        | Annotated[SplitFiles, Tag("splits")]
        | Annotated[tuple[Path, ...], Field(min_length=1), Tag("list")]
        | Frame,
        Discriminator(_kind),
    ]
    """One of: a .csv, .tsv, .jsonl, .json, .parquet or .txt file (a text on each line), a list of files, or a pattern
    such as `data/*.jsonl`, which is divided 80/10/10; a folder with files named train, dev (or validation, valid, val),
    test and auxiliary, or written by `save_to_disk`; `hf://datasets/OWNER/NAME`; a mapping from split to files. In
    Python also a pandas DataFrame, a `datasets.Dataset`, or a mapping of these."""
    text: str = "text"
    """Column of the text."""
    text2: str | None = None
    """Column of the second text of a pair."""
    label: str | tuple[str, ...] | None = "label"
    """Column of the label, or with `objective: multilabel` also a list of columns, one for each label. With null, or if a file has only texts, the task is language modelling. Chats (a column
    `messages`, or `prompt` and `completion`) need no columns; their answers are trained on."""
    attributes: tuple[str, ...] = ()
    """Columns of private attributes of the author: few values each, empty if unknown."""
    author: str | None = None
    """Column that identifies the author of each text, for `plant: {per_author: …}`."""
    objective: Objective | None = None
    """By default classification, or language modelling without labels. `regression`: the label is a number.
    `multilabel`: any number of labels applies to each text."""
    utility: UtilityMetric | None = None
    """Metric of utility. Classes: accuracy, macro-F1 or MCC, by default accuracy, or macro-F1 if the rarest class has
    less than a tenth of the evaluated texts. Regression: Spearman or Pearson. Several labels: micro-F1 or macro-F1."""

    @field_validator("name")
    @classmethod
    def _free(cls, name: str) -> str:
        if name in CATALOGUE or name in GENERATED:
            raise ValueError(f"'{name}' is the name of a known task; choose another one")
        return name

    @model_validator(mode="after")
    def _is_consistent(self) -> UserTask:
        several = isinstance(self.label, tuple)
        if several and (self.objective not in (None, "multilabel") or len(self.label or ()) < 2):
            raise ValueError("label: a list of columns, at least two, needs objective: multilabel")
        if self.label is None and self.objective not in (None, "language modelling"):
            raise ValueError(f"objective: {self.objective} needs a label, not null")
        if reason := metric_mismatch(self.utility, self.trained_for):
            raise ValueError(f"utility: {reason}")
        return self

    @property
    def trained_for(self) -> Objective:
        """The objective, if there are labels."""
        if isinstance(self.label, tuple):
            return "multilabel"
        return self.objective or "classification"

    @property
    def from_python(self) -> bool:
        """True if its data are a Python object, which a suite file cannot name."""
        given = self.path.splits.values() if isinstance(self.path, SplitFiles) else [self.path]
        return any(map(is_frame, given))

    def layout(self, train: Table) -> Layout:
        """The columns of the task.

        Raises:
            LeakboardError: the column of labels is missing.
        """
        label = LABELS if isinstance(self.label, tuple) else self.label
        if self.objective == "language modelling":
            label = None
        if train.names == [self.text] and "label" not in self.model_fields_set:
            _check_marks(train, self.text)
            label = None
        named = label in (LABELS, *train.names) or (label or "").partition(".")[0] in train.nested
        if label and not named and self.text in train.names:
            raise LeakboardError(
                f"{train.where}: no column '{label}' in its header line. "
                f"{did_you_mean(label or '', train.known)} For language modelling write label: null"
            )
        attributes = tuple(Attribute(column, column) for column in self.attributes)
        return Layout(
            self.text,
            self.text2,
            label,
            attributes=attributes,
            author=self.author,
            objective=self.trained_for,
        )


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


def _check_marks(table: Table, text: str) -> None:
    """Raise LeakboardError if the texts begin with labels, which would be trained on."""
    if all(own.startswith(FASTTEXT) for own in table.column(text)):
        raise LeakboardError(
            f"{table.where}: all texts begin with {FASTTEXT}, the format of fastText; write the labels to a column of a "
            "CSV or JSON lines file, or name the text with label: null if the marks belong to it"
        )


def _with_column(tables: Mapping[str, Table], column: str, text: str) -> Mapping[str, Table]:
    """The tables, with an empty column of labels for a test split that has none."""
    found = dict(tables)
    for split, table in tables.items():
        if text not in table.names:
            table.column(text)
        if split == "test" and column not in table.names:
            found[split] = table.with_columns({column: [""] * len(table)})
    return found


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
            tables = read_saved(folder) if is_saved(folder) else _read_own_folder(folder)
            return _by_split(tables, plain(folder)), source
    return {"": _read(task.path, base, task.name)}, source


def _first(files: Any) -> Any:
    return files[0] if isinstance(files, tuple) else files


def _read(files: Any, base: Path, name: str) -> Table:
    """Read files, patterns of files, or a frame."""
    if is_frame(files):
        return frame_table(files, name)
    found = list[Path]()
    for file in files if isinstance(files, tuple) else (files,):
        path = place(base / file)
        if any(sign in path.name for sign in GLOB) and not path.exists():
            matching = sorted(path.parent.glob(path.name))
            if not matching:
                raise LeakboardError(f"{plain(path)}: no file has such a name")
            found += matching
        else:
            found.append(path)
    return join_tables([read_table(path) for path in found])


def _by_split(tables: Mapping[str, Table], where: str) -> dict[str, Table]:
    """The tables by the names train, dev, test and auxiliary; other names are an error."""
    ours = {name: split for split, names in SPELLINGS.items() for name in names}
    found = dict[str, Table]()
    for name, table in tables.items():
        split = ours.get(name, name)
        if split not in ("", *SPLITS):
            raise LeakboardError(
                f"{where}: unknown split '{plain(name, 80)}'. {did_you_mean(name, [*SPLITS, *ours])} Give the "
                "splits by a mapping: path: {train: …, dev: …}"
            )
        if split in found:
            raise LeakboardError(f"{where}: has several splits that mean '{split}'; keep one")
        found[split] = table
    if not found.keys() & {"", "train"}:
        raise LeakboardError(f"{where}: no split 'train'; it has {', '.join(tables)}")
    return found


def _read_own_folder(folder: Path) -> dict[str, Table]:
    found = {split: find(folder, split, shards=True) for split in SPLITS}
    if not any(found.values()) and (folder / "data").is_dir():
        found = {split: find(folder / "data", split, shards=True) for split in SPLITS}
    _check_splits(folder, found, {split: SPELLINGS.get(split, (split,)) for split in SPLITS})
    return {
        split: join_tables([read_table(path) for path in paths])
        for split, paths in found.items()
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
    found = {split: find(folder, name) for split, name in names.items()}
    _check_splits(folder, found, {split: (name,) for split, name in names.items()}, dev=True)
    return {split: read_table(paths[0], plain_tsv=True) for split, paths in found.items() if paths}


def _check_splits(
    folder: Path,
    found: Mapping[str, Sequence[Path]],
    names: Mapping[str, Sequence[str]],
    dev: bool = False,
) -> None:
    for split in ("train", "dev") if dev or not found["test"] else ("train",):
        if not found[split]:
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
                f"{table.where}: {len(table)} rows are too few, none fell into {split}; "
                "expected more rows, or a file for each split"
            )
    return {**{split: t for split, t in tables.items() if split}, **cut}, [note]
