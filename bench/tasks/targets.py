"""Labels that are no classes: numbers for regression, and several labels per text.

Both are first written as one text in each row, so that unlabelled rows are found as those of classes are.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from leakboard.bench.contracts import LeakboardError, plain
from leakboard.bench.tasks.content import MOST_FIELDS
from leakboard.bench.tasks.labels import PLACES_SHOWN
from leakboard.bench.tasks.table import Table
from leakboard.bench.tasks.task import Targets
from leakboard.bench.tasks.values import is_missing

MOST_LABELS = 1000
"""Maximum number of labels, each of which is an output of the head."""
SEPARATORS = ("|", ";", ",")
"""Separators of labels in a field, of which a column has one."""
JOINED = re.compile(r"""['"]\s+['"]""")
"""Between entries of a NumPy array as text, which Python would join to one entry."""
YES, NO = ("1", "1.0", "true", "yes"), ("0", "0.0", "false", "no")


def with_numbers(tables: Mapping[str, Table], column: str) -> dict[str, Table]:
    """The tables with numbers in one notation, for `number_targets`.

    Raises:
        LeakboardError: a value is no finite number.
    """
    found = dict[str, Table]()
    for split, table in tables.items():
        values = list[str]()
        for row, text in enumerate(table.column(column)):
            try:
                number = float(text) if text.strip() else None
            except ValueError:
                number = math.nan
            if number is not None and not math.isfinite(number):
                raise LeakboardError(
                    f"{table.place(row)}: '{plain(text, 80)}' in column '{column}' is not a number; regression needs "
                    "a number with a decimal point, or an empty field, in each row"
                )
            values.append("" if number is None else repr(number).removesuffix(".0"))
        found[split] = table.with_columns({column: values})
    return found


def number_targets(tables: Mapping[str, Table], column: str) -> dict[str, Targets]:
    """[n] numbers by split, shifted and scaled so that those of train have mean 0 and variance 1.

    Raises:
        LeakboardError: all numbers of train are equal.
    """
    numbers = {name: np.array(table.column(column), float) for name, table in tables.items()}
    mean, spread = numbers["train"].mean(), numbers["train"].std()
    if not spread > 0 or not np.isfinite(spread):
        raise LeakboardError(
            f"{tables['train'].where}: column '{column}' has only the value {numbers['train'][0]:g}; expected "
            "different numbers"
        )
    return {name: ((own - mean) / spread).astype(np.float32) for name, own in numbers.items()}


def with_label_sets(
    tables: Mapping[str, Table], column: str | tuple[str, ...], name: str
) -> dict[str, Table]:
    """The tables with the labels of each row as a JSON list in the column `name`, for `flag_targets`.

    Labels are a list in each row; a text of labels between `|`, `;` or `,`; or columns with 1 for labels that apply
    and 0 for others. `[]` means that no label applies, and an empty field that the row has no labels.

    Raises:
        LeakboardError: a list of something else than labels, several separators, or a value that is not 0 or 1.
    """
    found = dict[str, Table]()
    for split, table in tables.items():
        if isinstance(column, tuple):
            sets = _from_flags(table, column)
        elif column in table.nested:
            sets = _from_lists(table, column)
        else:
            sets = _from_texts(table, column)
        texts = ["" if own is None else json.dumps(sorted(set(own))) for own in sets]
        nested = {other: values for other, values in table.nested.items() if other != name}
        found[split] = replace(table.with_columns({name: texts}), nested=nested)
    return found


def _from_flags(table: Table, columns: Sequence[str]) -> list[list[str] | None]:
    flags = [table.column(column) for column in columns]
    found = list[list[str] | None]()
    for row, values in enumerate(zip(*flags, strict=True)):
        plain_values = [value.strip().lower() for value in values]
        if not any(plain_values) or set(plain_values) == {"-1"}:
            found.append(None)
            continue
        for column, value in zip(columns, plain_values, strict=True):
            if value not in (*YES, *NO):
                raise LeakboardError(
                    f"{table.place(row)}: '{plain(value, 80)}' in column '{column}'; expected 1 if the label applies, else 0"
                )
        own = zip(columns, plain_values, strict=True)
        found.append([column for column, value in own if value in YES])
    return found


def _from_lists(table: Table, column: str) -> list[list[str] | None]:
    values = table.nested[column]
    lists = [value for value in values if isinstance(value, list)]
    are_flags = (
        len({len(value) for value in lists}) == 1
        and all(one in (0, 1) for value in lists for one in value if not isinstance(one, str))
        and any(len(set(map(repr, value))) < len(value) for value in lists)
    )
    if are_flags and not any(isinstance(one, str) for value in lists for one in value):
        return [
            None if is_missing(value) else [str(at) for at, one in enumerate(value) if one]
            for value in values
        ]
    return [_labels_in(table, row, column, value) for row, value in enumerate(values)]


def _from_texts(table: Table, column: str) -> list[list[str] | None]:
    texts = [text.strip() for text in table.column(column)]
    used = [sign for sign in SEPARATORS if any(sign in t for t in texts if not _is_list(t))]
    if len(used) > 1:
        row = next(row for row, text in enumerate(texts) if used[-1] in text)
        raise LeakboardError(
            f"{table.place(row)}: labels in column '{column}' are separated by {' and '.join(used)}; write them as "
            'a list such as ["a", "b"], or with one separator'
        )
    found = list[list[str] | None]()
    for row, text in enumerate(texts):
        if not text or text == "-1":
            found.append(None)
        elif _is_list(text):
            try:
                value = text if JOINED.search(text) else ast.literal_eval(text)
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                value = text
            found.append(_labels_in(table, row, column, value))
        else:
            parts = text.split(used[0]) if used else [text]
            found.append([part.strip() for part in parts if part.strip()])
    return found


def _is_list(text: str) -> bool:
    return text.startswith("[") and text.endswith("]")


def _labels_in(table: Table, row: int, column: str, value: Any) -> list[str] | None:
    if is_missing(value):
        return None
    if not isinstance(value, list) or not all(_is_label(one) for one in value):
        raise LeakboardError(
            f"{table.place(row)}: column '{column}' holds {plain(repr(value)[:80])}; expected a list of labels such "
            'as ["a", "b"]'
        )
    return [str(one).strip() for one in value]


def _is_label(value: Any) -> bool:
    """True for text and for whole numbers, but not for the flags of a list with one entry for each label."""
    return (isinstance(value, str) and bool(value.strip())) or type(value) is int


def flag_targets(
    tables: Mapping[str, Table], column: str
) -> tuple[tuple[str, ...], dict[str, Targets], list[str]]:
    """Names of the labels; [n, C] by split, 1 for labels that apply; and notes for the plan.

    Raises:
        LeakboardError: no label, or one, or too many.
    """
    sets = {split: list(map(json.loads, t.column(column))) for split, t in tables.items()}
    counts = {
        split: Counter(label for own in rows for label in own) for split, rows in sets.items()
    }
    names = tuple(sorted(set().union(*counts.values())))
    where = tables["train"].where
    if not 2 <= len(names) <= MOST_LABELS:
        raise LeakboardError(
            f"{where}: column '{column}' has {len(names):,} labels; expected 2 to {MOST_LABELS:,}"
        )
    if len(names) * max(map(len, sets.values())) > MOST_FIELDS:
        raise LeakboardError(
            f"{where}: more than {MOST_FIELDS:,} rows times labels; leave rows or rare labels out"
        )
    notes = []
    if unseen := [name for name in names if not counts["train"][name]]:
        shown = ", ".join(plain(name, 80) for name in unseen[:PLACES_SHOWN])
        notes.append(
            f"{len(unseen)} of {len(names)} labels do not occur in train, so that no model can learn them: {shown}"
            + (", …" if len(unseen) > PLACES_SHOWN else "")
        )
    index = {name: i for i, name in enumerate(names)}
    targets = {split: np.zeros((len(rows), len(names)), np.float32) for split, rows in sets.items()}
    for split, rows in sets.items():
        for row, own in enumerate(rows):
            targets[split][row, [index[label] for label in own]] = 1
    return names, targets, notes
