"""Parameters in words."""

from __future__ import annotations

from records import record

from leakboard.bench.contracts.cell import Plant
from leakboard.bench.contracts.record import Record
from leakboard.leaderboards.tables.frame import frame
from leakboard.leaderboards.tables.parameters import settings, setup


def test_parameters_read_as_words() -> None:
    assert settings('{"eta": 75.0, "k": null, "m": 2}', ["eta", "k"]) == "η = 75, k = none"


def test_a_setup_without_a_limit_reads_as_all_data_wherever_its_row_comes_from() -> None:
    rows = frame([record(limit=10), record(limit=None)])
    _, whole = rows.to_dict("records")
    assert setup(whole, rows) == "all data"
    assert setup(rows.iloc[1].to_dict(), rows) == "all data"


def test_setups_that_differ_in_how_often_canaries_are_planted_are_told_by_that() -> None:
    def planted(*copies: int) -> Record:
        one, plant = record(), Plant(canaries=("my id is {digits}",), copies=copies)
        return one.model_copy(update={"cell": one.cell.model_copy(update={"plant": plant})})

    rows = frame([planted(10), planted(1, 100), record()])
    assert [setup(row, rows) for row in rows.to_dict("records")] == [
        "copies = 10",
        "copies = 1, 100",
        "copies = none",
    ]
