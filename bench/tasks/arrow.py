"""Arrow tables and Parquet files, whose unpacked size is checked before they are read."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leakboard.bench.contracts import LeakboardError, plain
from leakboard.bench.tasks.content import byte_limit, check_held, check_size, too_large
from leakboard.bench.tasks.table import Rows, Table
from leakboard.bench.tasks.values import build_table

CHECKED = 10_000
"""Number of rows after which the size is checked."""
VALUE, RECORD = 60, 230
"""Bytes of a value and of a record in Python, in addition to characters and entries."""


def read_parquet(path: Path) -> Table:
    try:
        from pyarrow import parquet

        _check_parquet(path)
        table = parquet.ParquetFile(path).read()
    except LeakboardError:
        raise
    except Exception as error:  # damaged files raise errors of many types
        raise LeakboardError(f"{path}: not a readable Parquet file ({error})") from error
    return arrow_table(str(path), table)


def arrow_table(where: str, table: Any) -> Table:
    """Convert an Arrow table; class numbers are replaced by names, if its metadata have them.

    Raises:
        LeakboardError: see `build_table`; a column occurs twice.
    """
    import pyarrow as pa

    names = [str(name) for name in table.column_names]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise LeakboardError(f"{where}: the column '{plain(twice)}' occurs twice")
    rows = Rows.counted(f"{where}, data row", range(1, table.num_rows + 1))
    # pandas stores an index as such a column.
    kept = [i for i, name in enumerate(names) if not re.fullmatch(r"__index_level_\d+__", name)]
    columns = {}
    for i in kept:
        column = table.column(i)
        if pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type):
            column = column.cast(pa.string())
        columns[names[i]] = column.to_pylist()
    features = _hub_features((table.schema.metadata or {}).get(b"huggingface"))
    return build_table(where, columns, rows, features)


def _hub_features(metadata: bytes | None) -> dict[str, Sequence[str]]:
    try:
        features = json.loads(metadata or b"{}")["info"]["features"]
        return class_names(features)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def class_names(features: dict[str, Any]) -> dict[str, Sequence[str]]:
    """Class names by column of class numbers or lists of them, from `features` in the format of `datasets`."""
    found = {}
    for name, feature in features.items():
        if isinstance(feature, list) and len(feature) == 1:  # a list in older versions
            feature = {"feature": feature[0]}
        inner = feature.get("feature", feature) if isinstance(feature, dict) else {}
        if isinstance(inner, dict) and inner.get("_type") == "ClassLabel":
            found[name] = inner["names"]
    return found


def _check_parquet(path: Path) -> None:
    """Check the unpacked size of a file, in which one stored value may fill a million rows."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import parquet

    size = path.stat().st_size
    most, total, held = byte_limit(size), 0, 0.0
    with parquet.ParquetFile(path) as file:
        check_size(path, file.metadata.num_rows, file.metadata.num_columns)
        schema = file.schema_arrow
    texts = [field.name for field in schema if _is_text(field.type)]
    with parquet.ParquetFile(path, read_dictionary=texts) as file:
        for batch in file.iter_batches(CHECKED):
            for column in batch.columns:
                if isinstance(column, pa.DictionaryArray):
                    lengths = pc.binary_length(column.dictionary).take(column.indices)
                    total += pc.sum(lengths).as_py() or 0
                    characters = _text_bytes(column.dictionary).take(column.indices)
                    held += VALUE * len(column) + (pc.sum(characters).as_py() or 0)
                else:
                    total += column.nbytes
                    held += _held_by(column)
            if total > most:
                raise too_large(path, size, most, packed=True)
            check_held(str(path), held)


def _held_by(array: Any) -> float:
    """Estimated bytes of an Arrow array as Python values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    held = VALUE * float(len(array))
    if _is_text(array.type):
        return held + (pc.sum(_text_bytes(array)).as_py() or 0)
    if pa.types.is_struct(array.type):
        return held + RECORD * len(array) + sum(map(_held_by, array.flatten()))
    if pa.types.is_map(array.type):
        return held + RECORD * len(array) + _held_by(array.keys) + _held_by(array.items)
    if hasattr(array, "flatten") and pa.types.is_nested(array.type):
        return held + _held_by(array.flatten())
    return held


def _text_bytes(array: Any) -> Any:
    """Bytes of each text in Python: one per character, or at most four if a text is not ASCII."""
    import pyarrow as pa
    import pyarrow.compute as pc

    length = pc.binary_length(array)
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return length
    characters = pc.utf8_length(array)
    return pc.if_else(pc.equal(length, characters), length, pc.multiply(characters, 4))


def _is_text(of: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    known = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return any(each(of) for each in known)
