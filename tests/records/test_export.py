"""The frame as a file."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from records import leak, record, skipped, sweep

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.threat import Goal
from leakboard.bench.records.frame import export, frame, load

pytestmark = pytest.mark.usefixtures("few_methods")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".json"])
def test_an_export_reads_back_as_the_same_frame(tmp_path: Path, suffix: str) -> None:
    odd = record(
        "NA", {"text": 'a "b", é'}, utility=None, leaks=[], status="failed", reason="x\ny, 'z'"
    )
    found = [skipped(), leak(1 / 3, goal=Goal.ATTRIBUTE, attribute="gender", channel=None)]
    table = frame([odd, record(utility=2 / 3, limit=None, leaks=found), *sweep()])
    path = tmp_path / "new" / f"table{suffix}"
    export(table, path)
    pd.testing.assert_frame_equal(load(path), table, check_exact=True)
    export(frame([]), path)
    pd.testing.assert_frame_equal(load(path), frame([]))


def test_an_unknown_suffix_is_told_the_three_known_ones(tmp_path: Path) -> None:
    for use in (lambda path: export(frame([]), path), load):
        with pytest.raises(LeakboardError, match=r"'\.xlsx'.*\.csv, \.parquet or \.json"):
            use(tmp_path / "table.xlsx")


def test_a_failed_export_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")

    def half_written(table: pd.DataFrame, to: Path, index: bool) -> None:
        Path(to).write_text("ha")
        raise OSError("no space left")

    monkeypatch.setattr(pd.DataFrame, "to_csv", half_written)
    with pytest.raises(OSError, match="no space"):
        export(frame([]), path)
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]
