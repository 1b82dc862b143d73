"""The frame as a file."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from records import leak, record, skipped, sweep

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.threat import Goal
from leakboard.bench.records.frame import COLUMNS, TEXT, TRUTH, export, frame

pytestmark = pytest.mark.usefixtures("few_methods")


def read(path):
    """The frame of an exported file, with the types of its columns."""
    if path.suffix == ".parquet":
        return pd.read_parquet(path).astype(COLUMNS)
    if path.suffix == ".json":
        return pd.DataFrame(json.loads(path.read_text("utf-8")), columns=list(COLUMNS)).astype(
            COLUMNS
        )
    # Read as text first, to distinguish empty text from missing numbers.
    table = pd.read_csv(path, dtype=TEXT, keep_default_na=False)
    for name, kind in COLUMNS.items():
        if kind == TRUTH:
            table[name] = table[name] == "True"
        elif kind != TEXT:
            table[name] = table[name].where(table[name] != "")
    return table.astype(COLUMNS)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".json"])
def test_an_export_reads_back_as_the_same_frame(tmp_path: Path, suffix: str) -> None:
    odd = record(
        "NA", {"text": 'a "b", é'}, utility=None, leaks=[], status="failed", reason="x\ny, 'z'"
    )
    found = [skipped(), leak(1 / 3, goal=Goal.ATTRIBUTE, attribute="gender", channel=None)]
    table = frame([odd, record(utility=2 / 3, limit=None, leaks=found), *sweep()])
    path = tmp_path / "new" / f"table{suffix}"
    export(table, path)
    pd.testing.assert_frame_equal(read(path), table, check_exact=True)
    export(frame([]), path)
    pd.testing.assert_frame_equal(read(path), frame([]))


def test_an_unknown_suffix_is_told_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(LeakboardError, match=r"'\.xlsx'.*\.csv, \.parquet, \.json, \.tex or \.md"):
        export(frame([]), tmp_path / "table.xlsx")


def test_a_failed_export_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")

    def half_written(table: pd.DataFrame, to: Path, index: bool) -> None:
        Path(to).write_text("ha")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", half_written)
    with pytest.raises(OSError, match="No space") as error:
        export(frame([]), path)
    assert error.value.filename == str(path)
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]
