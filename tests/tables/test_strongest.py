"""The short table of a run: numbers for a program, words for a reader, and nothing that vanishes."""

from __future__ import annotations

import pandas as pd
import pytest
from boards import cell, seeds
from records import leak

from leakboard.bench.contracts.threat import Goal
from leakboard.leaderboards.tables.comparisons import comparisons
from leakboard.leaderboards.tables.frame import frame
from leakboard.leaderboards.tables.strongest import COLUMNS, Best, strongest

pytestmark = pytest.mark.usefixtures("certified")

RECORDS = [
    *seeds("none", [0.90, 0.92], [0.9, 1.0]),
    *seeds("sap", [0.80, 0.86], [0.4, 0.6], params={"eta": 75.0}),
]


def best(records):
    return strongest(frame(records), comparisons(records))


def test_a_row_holds_means_over_seeds_with_their_intervals_and_the_cost():
    table = best(RECORDS)
    assert list(table.columns) == COLUMNS
    row = table.set_index("setting").loc["sap η=75"]
    assert (row["goal"], row["attack"], row["seeds"]) == ("inversion", "eia-nn", 2)
    assert row["success"] == pytest.approx(0.5)
    assert row["success_low"] < 0.5 < row["success_high"]
    assert (row["chance"], row["ep"]) == pytest.approx((0.2, 0.5))
    assert row["utility"] == pytest.approx(0.83)
    assert row["cost"] == pytest.approx(0.08)
    assert row["cost_low"] < 0.08 < row["cost_high"]
    assert row["megabytes"] == pytest.approx(0.501, abs=1e-3)
    assert (row["certificate"], row["standing"], row["note"]) == (1.0, "certified", "")


def test_of_several_attacks_the_strongest_stands_there():
    more = [leak(0.7, "eia-map", chance=0.2), leak(0.99, "prior", chance=0.2, channel=None)]
    table = best([cell("none"), cell("sap", more=more)])
    assert table["attack"].tolist() == ["eia-nn", "eia-map"]


def test_what_broke_is_a_row_with_its_reason_and_what_did_not_apply_is_none():
    failed = leak(None, status="failed", reason="no memory", goal=Goal.LABEL)
    idle = leak(None, status="skipped", reason="does not fit", goal=Goal.MEMBERSHIP)
    died = cell("dc", utility=None, success=None, status="failed", reason="no loss")
    table = best([cell("none"), cell("sap", more=[failed, idle]), died])
    broken = table[table["attack"] == ""]
    assert broken["goal"].tolist() == ["label", ""]
    assert broken["note"].tolist() == ["eia-nn failed: no memory", "failed: no loss"]
    assert "eia-nn failed: no memory" in repr(table)


def test_without_a_cell_that_is_not_protected_there_is_no_cost():
    table = best([cell("sap")])
    assert table["cost"].isna().all()
    assert " – " in repr(table)


def test_printed_it_has_a_heading_for_each_task_and_tells_each_setting_once():
    told = repr(best([*RECORDS, cell("none", task="sst2"), cell("sap", task="sst2")])).splitlines()
    headings = [line for line in told if "·" in line]
    assert headings == ["reviews · minilm · cut 0", "sst2 · minilm · cut 0"]
    assert "0.500 [" in next(line for line in told if line.startswith("sap η=75"))
    more = [leak(0.7, "kmeans", Goal.LABEL, chance=0.2)]
    lines = repr(best([cell("none", more=more)])).splitlines()
    assert [line.startswith("none") for line in lines[2:]] == [True, False]


def test_a_selection_of_rows_is_printed_alike_and_of_columns_as_any_table():
    table = best(RECORDS)
    assert isinstance(table.head(1), Best)
    assert repr(table.head(1)).startswith("reviews · minilm · cut 0")
    assert repr(table[["goal", "attack"]]) == repr(pd.DataFrame(table[["goal", "attack"]]))
    assert table._repr_html_().startswith("<pre>reviews")
    assert "<table" in table[["goal", "attack"]]._repr_html_()


def test_of_no_records_there_is_an_empty_table():
    table = best([])
    assert len(table) == 0
    assert repr(table) == "no attack found anything"
