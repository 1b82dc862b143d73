"""Assembly of a Task from tables: class indices, attribute values, and the auxiliary split."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from leakboard.bench.contracts import Ints, LeakboardError, Objective, did_you_mean, plain
from leakboard.bench.tasks.labels import LEAST_KEPT, drop_unlabelled, rare_notes
from leakboard.bench.tasks.sources import COMMON, RUN, PublicRows, draw_public, shares_source
from leakboard.bench.tasks.table import Table, normal
from leakboard.bench.tasks.targets import flag_targets, number_targets
from leakboard.bench.tasks.task import Split, Targets, Task

AUXILIARY_SHARE = 0.2
"""Share of the sources of training examples that become public text."""
AUXILIARY_MOST = 15_000
"""Approximate maximum of public examples in large tasks, more than any attack uses."""
LEAST = 10
"""Minimum number of training examples."""


@dataclass(frozen=True)
class Attribute:
    """A private attribute of the author, and its column."""

    name: str
    column: str
    values: tuple[str, ...] = ()
    """Values in order; empty for the sorted values that occur."""
    edges: tuple[int, ...] = ()
    """For numeric columns: the lower bounds of the second and later values."""
    spellings: dict[str, str] = field(default_factory=dict)
    """Alternative spellings of values."""

    def read(self, value: str) -> str:
        """The attribute value of a field; an empty field stays empty.

        Raises:
            ValueError: the attribute is banded and the field is no whole number.
        """
        if value and self.edges:
            return self.values[bisect_right(self.edges, int(value))]
        return self.spellings.get(value, value)


@dataclass(frozen=True)
class Layout:
    """Columns of a table."""

    text: str = "text"
    text2: str | None = None
    label: str | None = "label"
    """None for language modelling."""
    labels: tuple[str, ...] = ()
    """Labels in order; empty for the sorted labels of train."""
    attributes: tuple[Attribute, ...] = ()
    author: str | None = None
    """Column with an identifier of the author."""
    objective: Objective = "classification"
    """Of a task with labels."""

    @property
    def columns(self) -> list[str]:
        named = filter(None, (self.text, self.text2, self.label, self.author))
        return [*named, *(a.column for a in self.attributes)]


def assemble(
    name: str,
    tables: dict[str, Table],
    layout: Layout,
    source: str,
    notes: Sequence[str] = (),
) -> Task:
    """Build a task from one table per split; white space in texts is normalised.

    Unlabelled rows are removed. Without a table `auxiliary`, a fifth of train becomes that split, less for large
    tasks. Whole sources are drawn by hash (see `draw_public`), so that the split is the same everywhere.

    Args:
        notes: notes for the plan.

    Raises:
        LeakboardError: a column is missing, a text is empty, a label does not occur in
            train, an attribute has an unexpected value, or public text holds the customer's own.
    """
    for table in tables.values():
        _check_columns(table, layout)
    all_notes = list(notes)
    if layout.label is not None:
        tables, dropped = drop_unlabelled(tables, layout.label)
        all_notes += dropped
    for table in tables.values():
        _check(table, layout)
    labels: tuple[str, ...] = ()
    targets = dict[str, Targets]()
    if layout.label is not None and layout.objective == "regression":
        targets = number_targets(tables, layout.label)
    elif layout.label is not None and layout.objective == "multilabel":
        labels, targets, unseen = flag_targets(tables, layout.label)
        all_notes += unseen
    elif layout.label is not None:
        labels = _labels(tables, layout.label, layout.labels)
    classes = () if targets else labels
    values = {a.name: _values(a, tables) for a in layout.attributes}
    everybody = () if layout.author is None else _everybody(tables, layout.author)
    splits = {}
    for split, table in tables.items():
        unlabelled = np.zeros(len(table), dtype=np.int64)
        splits[split] = Split(
            _texts(table, layout.text),
            _indices(table.column(layout.label), classes)
            if layout.label is not None and classes
            else unlabelled,
            None if layout.text2 is None else _texts(table, layout.text2),
            {a.name: _indices(_read(a, table), values[a.name]) for a in layout.attributes},
            authors=None
            if layout.author is None
            else _indices(table.column(layout.author), everybody),
            targets=targets.get(split),
        )
    if layout.label is not None and classes:
        all_notes += rare_notes(tables["train"], labels, layout.label, [*splits.keys() - {"train"}])
    if "auxiliary" in splits:
        _check_public(splits, tables["auxiliary"].where)
        all_notes.append(f"public text is that of {tables['auxiliary'].where}")
    else:
        splits["train"], splits["auxiliary"], why = _carved(splits, tables["train"].where, classes)
        all_notes.append(why)
    return Task(name, labels, splits, values, source, notes=(*all_notes, *_copies(splits)))


def _check_columns(table: Table, layout: Layout) -> None:
    names = {*table.names}
    if not any(column.partition(".")[0] in names or column in names for column in layout.columns):
        raise LeakboardError(
            f"{table.where}: no header line; the first line must name the columns "
            + ", ".join(layout.columns)
        )
    for column in layout.columns:
        table.column(column)


def _check(table: Table, layout: Layout) -> None:
    for column in filter(None, (layout.text, layout.text2, layout.author)):
        for row, value in enumerate(table.column(column)):
            if not value or value.isspace():
                raise LeakboardError(f"{table.place(row)}: column '{column}' is empty")


def _labels(tables: dict[str, Table], column: str, given: tuple[str, ...]) -> tuple[str, ...]:
    """The labels in order, after checking every row."""
    trained = set(tables["train"].column(column))
    labels = given or tuple(sorted(trained))
    if len(labels) < 2:
        raise LeakboardError(
            f"{tables['train'].where}: column '{column}' has only the value '{labels[0]}'; "
            "expected at least two labels"
        )
    known = frozenset(labels)
    for table in tables.values():
        for row, label in enumerate(table.column(column)):
            if label in trained and label in known:
                continue
            where = f"{table.place(row)}: label '{plain(label, 80)}' in column '{column}'"
            if label not in trained:
                near = did_you_mean(label, trained)
                raise LeakboardError(f"{where} does not occur in train. {near}")
            near = did_you_mean(label, known)
            raise LeakboardError(f"{where} is not a label of the task. {near}")
    return labels


def _everybody(tables: dict[str, Table], column: str) -> tuple[str, ...]:
    return tuple(sorted({author for table in tables.values() for author in table.column(column)}))


def _values(attribute: Attribute, tables: dict[str, Table]) -> tuple[str, ...]:
    if attribute.values:
        return attribute.values
    found = {value for table in tables.values() for value in table.column(attribute.column)}
    return tuple(sorted(found - {""}))


def _read(attribute: Attribute, table: Table) -> list[str]:
    fields = []
    for row, value in enumerate(table.column(attribute.column)):
        try:
            read = attribute.read(value)
        except ValueError:
            where = f"{table.place(row)}: '{plain(value, 80)}' in column '{attribute.column}'"
            raise LeakboardError(f"{where}; expected a whole number") from None
        if read and attribute.values and read not in attribute.values:
            where = f"{table.place(row)}: '{plain(value, 80)}' in column '{attribute.column}'"
            raise LeakboardError(f"{where} is unknown. {did_you_mean(read, attribute.values)}")
        fields.append(read)
    return fields


def _texts(table: Table, column: str) -> tuple[str, ...]:
    return tuple(" ".join(text.split()) for text in table.column(column))


def _indices(fields: Sequence[str], names: Sequence[str]) -> Ints:
    """Positions in `names`; -1 for an empty field."""
    index = {"": -1} | {name: i for i, name in enumerate(names)}
    return np.array([index[value] for value in fields], dtype=np.int64)


def _carved(
    splits: dict[str, Split], where: str, labels: tuple[str, ...]
) -> tuple[Split, Split, str]:
    """The rest of train and the auxiliary split, both in the order of train, and a note for the plan."""
    train, n = splits["train"], len(splits["train"])
    if n < LEAST:
        raise LeakboardError(
            f"{where}: {n} examples in train; expected at least {LEAST}, of which some serve "
            "as public text"
        )
    private = [split for name, split in splits.items() if name != "train"]
    share = min(AUXILIARY_SHARE, AUXILIARY_MOST / n)
    sizes = np.bincount(train.labels, minlength=max(1, len(labels)))
    needed = np.minimum(sizes, LEAST_KEPT)
    few = sizes < LEAST_KEPT  # classes without public rows
    while True:
        drawn = draw_public(train, private, share, few[train.labels])
        kept = np.bincount(train.labels[~drawn.flags], minlength=len(sizes))
        if not (kept < needed).any():
            break
        few |= kept < needed
    public = drawn.flags
    return (
        train.take(np.flatnonzero(~public)),
        train.take(np.flatnonzero(public)),
        _why_public(drawn, n),
    )


def _why_public(drawn: PublicRows, n: int) -> str:
    """Note about the choice of public text from n examples of train."""
    public = int(drawn.flags.sum())
    if not public:
        return (
            f"there is no public text, since all {n:,} examples of train are equal, occur in other splits, or are of "
            f"classes with fewer than {LEAST_KEPT} rows; give text that an attacker knows as the split 'auxiliary'"
        )
    text = f"public text is {public:,} of {n:,} examples of train, whole sources drawn by hash: "
    if not drawn.linked:
        return text + (
            f"only equal examples are one source, since shared runs of {RUN} words link all of them; public and "
            "private texts share phrases"
        )
    text += f"examples that share {RUN} words in a row are one source"
    return (
        f"{text}, except for words that more than {COMMON:.0%} of a split share, such as a form"
        if drawn.forms
        else text
    )


def _copies(splits: dict[str, Split]) -> list[str]:
    """A note for each split that repeats examples of train."""
    trained = set(_keys(splits["train"]))
    notes = []
    for name, split in splits.items():
        if name not in ("train", "auxiliary"):
            copies = sum(key in trained for key in _keys(split))
            if copies:
                notes.append(
                    f"{copies:,} of {len(split):,} examples of {name} are duplicates of examples of train: their "
                    "utility shows memorisation"
                )
    return notes


def _keys(split: Split) -> list[tuple[str, str]]:
    pairs = split.pairs or [""] * len(split)
    return [(normal(text), normal(pair)) for text, pair in zip(split.texts, pairs, strict=True)]


def _check_public(splits: dict[str, Split], where: str) -> None:
    private = [split for name, split in splits.items() if name != "auxiliary"]
    both = np.flatnonzero(shares_source(splits["auxiliary"], private))
    if len(both):
        raise LeakboardError(
            f"{where}: {len(both)} of {len(splits['auxiliary'])} public examples share a text, or {RUN} "
            f"words in a row, with another split, the first in data row {both[0] + 1}. Public text must be "
            "disjoint from the customer's; remove these examples"
        )
