"""Tasks that a suite describes by users' data: files, folders, frames, datasets of the hub, and their columns."""

from __future__ import annotations

from collections.abc import Mapping
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
)
from leakboard.bench.tasks.assemble import Attribute, Layout
from leakboard.bench.tasks.catalogue import CATALOGUE, GENERATED
from leakboard.bench.tasks.frames import (
    is_frame,
)
from leakboard.bench.tasks.table import SPELLINGS, Table

FASTTEXT = "__label__"
"""Start of a line with a label."""
LABELS = "<labels>"
"""Column of the labels that stand in several columns of a file."""
SPLITS = ("train", "dev", "test", "auxiliary")


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

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

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


def _check_marks(table: Table, text: str) -> None:
    """Raise LeakboardError if the texts begin with labels, which would be trained on."""
    if all(line.startswith(FASTTEXT) for line in table.column(text)):
        raise LeakboardError(
            f"{table.where}: all texts begin with {FASTTEXT}, the format of fastText; write the labels to a column of a "
            "CSV or JSON lines file, or name the text with label: null if the marks belong to it"
        )
