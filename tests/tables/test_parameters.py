"""Parameters in words."""

from __future__ import annotations

from records import record

from leaderboards.tables.frame import frame
from leaderboards.tables.parameters import settings, setup


def test_parameters_read_as_words() -> None:
    assert settings('{"eta": 75.0, "k": null, "m": 2}', ["eta", "k"]) == "η = 75, k = none"


def test_a_setup_without_a_limit_reads_as_all_data_wherever_its_row_comes_from() -> None:
    rows = frame([record(limit=10), record(limit=None)])
    _, whole = rows.to_dict("records")
    assert setup(whole, rows) == "all data"
    assert setup(rows.iloc[1].to_dict(), rows) == "all data"
