"""Labels in users' files: missing labels, spellings, numbers, and classes with few rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from leakboard.bench.contracts import LeakboardError, plain
from leakboard.bench.tasks.table import Table

HIDDEN = "-1"
"""Label of unlabelled rows, as in GLUE, unless train uses it together with other labels."""
MISSING = frozenset({"na", "n/a", "nan", "null", "none", "<na>"})
"""Labels that some programs write for a missing one."""
LEAST_KEPT = 4
"""Minimum number of rows of each class in train; only further rows become public text, dev or test."""
MOST_CLASSES = 20
"""Maximum number of classes if more than half of the rows have different labels."""
WHOLE_NUMBER = re.compile(r"-?\d+(\.0+)?")
NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
PLACES_SHOWN = 3
"""Maximum number of places in a message."""


def drop_unlabelled(tables: Mapping[str, Table], column: str) -> tuple[dict[str, Table], list[str]]:
    """The tables without unlabelled rows, and a note for each table with such rows.

    A split without any label is removed.

    Raises:
        LeakboardError: train, dev or auxiliary has no label at all.
    """
    trained = {label.strip() for label in tables["train"].column(column)}
    missing = {""} if trained - {"", HIDDEN} and HIDDEN in trained else {"", HIDDEN}
    kept, notes = dict[str, Table](), list[str]()
    if HIDDEN not in missing and all(WHOLE_NUMBER.fullmatch(label) for label in trained - {""}):
        notes.append(
            f"{tables['train'].where}: {HIDDEN} in column '{column}' is taken as a label like others; leave these rows "
            "out if they have none"
        )
    if odd := sorted(label for label in trained if label.casefold() in MISSING):
        notes.append(
            f"{tables['train'].where}: '{odd[0]}' in column '{column}' is a class like others; if it means that a label is "
            "missing, leave it empty"
        )
    for split, table in tables.items():
        labels = table.column(column)
        rows = [row for row, label in enumerate(labels) if label.strip() not in missing]
        without = sorted(set(range(len(labels))) - set(rows)) if len(rows) < len(labels) else []
        if not without:
            kept[split] = table
        elif rows:
            kept[split] = table.take(rows)
            notes.append(
                f"{len(without)} of {len(labels)} rows of {split} have no label and are left out: "
                + _places(table, without)
            )
        elif split in ("train", "dev", "auxiliary"):
            raise LeakboardError(
                f"{table.where}: none of {len(labels)} rows has a label in column '{column}', of which the split "
                f"'{split}' needs some; give a file with labels, or label: null for language modelling"
            )
        else:
            notes.append(
                f"{table.where}: none of {len(labels)} rows has a label; the split '{split}' is not used"
            )
    return kept, notes


def with_plain_labels(tables: Mapping[str, Table], column: str) -> dict[str, Table]:
    """The tables, with 1.0 written as 1 if all labels are whole numbers.

    Raises:
        LeakboardError: two labels differ only by case or blanks, or there are about as many labels as texts.
    """
    counts = Counter(label for table in tables.values() for label in table.column(column))
    filled = [label for label in counts if label]
    if all(WHOLE_NUMBER.fullmatch(label) for label in filled) and any(
        "." in label for label in filled
    ):
        tables = {
            split: table.with_columns(
                {column: [label.partition(".")[0] for label in table.column(column)]}
            )
            for split, table in tables.items()
        }
        return dict(tables)
    where, rows = next(iter(tables.values())).where, sum(counts.values())
    if (
        len(filled) > MOST_CLASSES
        and any("." in one for one in filled)
        and all(map(NUMBER.fullmatch, filled))
    ):
        raise LeakboardError(
            f"{where}: column '{column}' holds numbers with fractions; write objective: regression, or round "
            "them to a few classes"
        )
    known = dict[str, str]()
    for label in filled:
        other = known.setdefault(" ".join(label.casefold().split()), label)
        if other != label:
            few, many = sorted((label, other), key=counts.__getitem__)
            raise LeakboardError(
                f"{_first(tables, column, few)}: the label '{plain(few, 80)}' in column '{column}' ({counts[few]} rows) "
                f"differs from '{plain(many, 80)}' ({counts[many]} rows) only by case or blanks; use one spelling"
            )
    if len(filled) > MOST_CLASSES and 2 * len(filled) > rows:
        raise LeakboardError(
            f"{where}: column '{column}' has {len(filled):,} values in {rows:,} rows: expected a few classes, each "
            "with several rows. For language modelling write label: null"
        )
    return dict(tables)


def _first(tables: Mapping[str, Table], column: str, label: str) -> str:
    return next(
        table.place(table.column(column).index(label))
        for table in tables.values()
        if label in table.column(column)
    )


def cut_by_text(
    table: Table, by: str, label: str | None, split_of: Mapping[int, str], rest: str
) -> dict[str, Table]:
    """Divide a table by the bucket of a column's value, but keep classes with few rows in the split `rest`.

    Rows with equal texts stay together.
    """
    tables = table.divided(by, dict(split_of), rest)
    if label is None or label not in table.columns:
        return tables
    labels = table.column(label)
    whole, kept = Counter(labels), Counter(tables[rest].column(label))
    few = {one for one, n in whole.items() if kept[one] < min(n, LEAST_KEPT)}
    if not few:
        return tables
    texts = {text for text, own in zip(table.column(by), labels, strict=True) if own in few}
    split_by_text = {
        text: split for split, part in tables.items() for text in part.column(by)
    } | dict.fromkeys(texts, rest)
    return table.cut([split_by_text[text] for text in table.column(by)], list(tables))


def rare_notes(
    table: Table, labels: Sequence[str], column: str, splits: Sequence[str]
) -> list[str]:
    """A note for each class with fewer than `LEAST_KEPT` rows in a table."""
    counts = Counter(table.column(column))
    notes = []
    for label in labels:
        if 0 < counts[label] < LEAST_KEPT:
            rows = [row for row, own in enumerate(table.column(column)) if own == label]
            notes.append(
                f"the class '{plain(label, 80)}' has {counts[label]} rows in train, all of which stay there "
                f"({_places(table, rows)}); {' and '.join(splits)} may show nothing about it"
            )
    return notes


def _places(table: Table, rows: Sequence[int]) -> str:
    """The first few places of some rows."""
    named = [table.place(row) for row in rows[:PLACES_SHOWN]]
    more = f" and {len(rows) - PLACES_SHOWN:,} more" if len(rows) > PLACES_SHOWN else ""
    first, *others = named
    stem, _, _ = first.rpartition(" ")
    same = [other.removeprefix(stem + " ") for other in others]
    return ", ".join([first, *same]) + more
