"""The frame as a file."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from leakboard.bench.contracts import LeakboardError
from leakboard.bench.records import replacing
from leakboard.leaderboards.tables.frame import COLUMNS, TEXT, TRUTH


def export(table: pd.DataFrame, path: Path) -> None:
    """Writes a frame as .csv, .parquet or .json; a reader never sees half a file.

    Raises:
        LeakboardError: another suffix.
    """
    write = _writer(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        write(table, file)


def load(path: Path) -> pd.DataFrame:
    """Reads what `export` wrote: the same frame, types included.

    Raises:
        LeakboardError: another suffix.
    """
    _writer(path)
    if path.suffix == ".parquet":
        return pd.read_parquet(path).astype(COLUMNS)
    if path.suffix == ".json":
        rows = json.loads(path.read_text("utf-8"))
        return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)
    # Read as text first: only then is an empty text not the same as a missing number.
    table = pd.read_csv(path, dtype=TEXT, keep_default_na=False)
    for name, kind in COLUMNS.items():
        if kind == TRUTH:
            table[name] = table[name] == "True"
        elif kind != TEXT:
            table[name] = table[name].where(table[name] != "")
    return table.astype(COLUMNS)


def _writer(path: Path) -> Callable[[pd.DataFrame, Path], object]:
    writers: dict[str, Callable[[pd.DataFrame, Path], object]] = {
        ".csv": lambda table, to: table.to_csv(to, index=False),
        ".parquet": lambda table, to: table.to_parquet(to, index=False),
        ".json": _write_json,
    }
    if path.suffix not in writers:
        raise LeakboardError(
            f"{path}: the suffix '{path.suffix}' is unknown; use .csv, .parquet or .json"
        )
    return writers[path.suffix]


def _write_json(table: pd.DataFrame, to: Path) -> None:
    # pandas' own writer keeps at most 15 digits of a number; json keeps them all.
    rows = [
        {name: _plain(value) for name, value in row.items()} for row in table.to_dict("records")
    ]
    to.write_text(json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")


def _plain(value: Any) -> Any:
    missing = value is pd.NA or (isinstance(value, float) and math.isnan(value))
    return None if missing else value
