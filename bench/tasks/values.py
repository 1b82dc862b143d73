"""Conversion of values in files and frames to text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from leakboard.bench.contracts import LeakboardError
from leakboard.bench.tasks.table import Rows, Table

ENTRIES = 1000
"""Maximum length of a list in a row."""


def build_table(
    where: str,
    columns: Mapping[str, Sequence[Any]],
    rows: Rows,
    classes: Mapping[str, Sequence[str]] | None = None,
) -> Table:
    """Build a table from Python values.

    A missing value becomes empty text. Bytes are decoded as UTF-8. Floats are written without `.0` if all values of a
    column are whole.

    Args:
        classes: class names, for columns with class numbers or lists of them; −1 becomes empty text.

    Raises:
        LeakboardError: a value has an unsupported type; its row is named.
    """
    texts: dict[str, list[str]] = {}
    nested: dict[str, list[Any]] = {}
    for name, values in columns.items():
        known = (classes or {}).get(name)
        if any(isinstance(value, list | tuple | dict) or _is_array(value) for value in values):
            nested[name] = [
                _class_names(_plain(v), known, rows, row) for row, v in enumerate(values)
            ]
        elif known is not None:
            texts[name] = [_class_name(v, known, rows, row) for row, v in enumerate(values)]
        else:
            texts[name] = _texts(name, values, rows)
    return Table(where, texts, nested, rows)


def _texts(name: str, values: Sequence[Any], rows: Rows) -> list[str]:
    numbers = [value for value in values if isinstance(value, float) and value == value]
    whole = bool(numbers) and all(value.is_integer() for value in numbers)
    return [
        value if type(value) is str else _text(name, value, rows, row, whole)
        for row, value in enumerate(values)
    ]


def _text(name: str, value: Any, rows: Rows, row: int, whole: bool) -> str:
    if is_missing(value):
        return ""
    if isinstance(value, bytes | bytearray | memoryview):
        try:
            return bytes(value).decode("utf-8")
        except UnicodeDecodeError as error:
            raise LeakboardError(
                f"{rows[row]}: column '{name}' holds bytes that are not UTF-8 ({error.reason}); save it as text"
            ) from error
    if hasattr(value, "item") and not isinstance(value, str):
        value = value.item()
    if isinstance(value, float) and whole:
        return str(int(value))
    if isinstance(value, str | int | float | Decimal | date | time | UUID):
        return str(value)
    raise LeakboardError(
        f"{rows[row]}: column '{name}' holds a {type(value).__name__}; expected text, a number or a date"
    )


def is_missing(value: Any) -> bool:
    """True for None, NaN, and the missing values of pandas."""
    if value is None:
        return True
    if isinstance(value, str):
        return False
    return type(value).__name__ in ("NAType", "NaTType") or (
        isinstance(value, float) and value != value
    )


def _class_name(value: Any, names: Sequence[str], rows: Rows, row: int) -> str:
    if is_missing(value) or value == -1:
        return ""
    if isinstance(value, str):
        return value
    if 0 <= value < len(names):
        return names[int(value)]
    raise LeakboardError(f"{rows[row]}: class number {value}; expected 0 to {len(names) - 1}")


def _class_names(value: Any, names: Sequence[str] | None, rows: Rows, row: int) -> Any:
    """A list of class numbers as a list of names."""
    if names is None or not isinstance(value, list):
        return value
    return [_class_name(one, names, rows, row) for one in value]


def _is_array(value: Any) -> bool:
    return hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0


def _plain(value: Any) -> Any:
    if _is_array(value):
        value = value.tolist()
    if isinstance(value, tuple):
        value = list(value)
    return value[: ENTRIES + 1] if isinstance(value, list) else value
