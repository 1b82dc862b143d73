"""The frame: no record and no leak is lost."""

from __future__ import annotations

import pandas as pd
import pytest
from records import leak, record, skipped, sweep

from leakboard.bench.records.frame import COLUMNS, failures, frame

pytestmark = pytest.mark.usefixtures("few_methods")


def test_columns_keep_their_order_and_types() -> None:
    for table in (frame(sweep()), frame([])):
        assert list(table.columns) == list(COLUMNS)
        assert table.dtypes.astype(str).to_dict() == COLUMNS


def test_no_leak_and_no_record_is_lost() -> None:
    silent = record("sap", {"eta": 1.0}, utility=None, leaks=[], status="diverged", reason="inf")
    table = frame([*sweep(), silent])
    assert len(table) == 3 * (3 * 2 + 1) + 1
    last = table.iloc[-1]
    assert (last["status"], last["reason"], last["attack"]) == ("diverged", "inf", "")
    assert pd.isna(last["utility"])
    assert pd.isna(last["ep"])


def test_a_failed_cell_does_not_hide_behind_a_leak_that_went_well() -> None:
    table = frame([record(status="failed", reason="disk full")])
    assert table[["status", "reason"]].iloc[0].tolist() == ["failed", "disk full"]


def test_a_skipped_leak_keeps_its_own_reason() -> None:
    table = frame([record(leaks=[skipped()])])
    assert table[["status", "reason"]].iloc[0].tolist() == ["skipped", "needs a cut above 0"]


def test_numbers_are_those_of_the_record() -> None:
    made = record(leaks=[leak(0.3, chance=0.1)])
    row = frame([made]).iloc[0]
    assert row["ep"] == 1 - 0.3
    assert (row["ep_low"], row["ep_high"]) == (1 - row["success_high"], 1 - row["success_low"])
    assert row["advantage"] == pytest.approx(0.2 / 0.9)
    assert row["bytes_up"] == made.cost.bytes_up
    assert (row["epoch_bytes_up"], row["epoch_bytes_down"]) == (500_000, 1_000.5)
    names = ["parameters", "tokens", "flops", "megabytes"]
    assert row[[f"bottom_{name}" for name in names]].tolist() == [300, 7, 9_000, 1.5]
    assert (row["chance"], row["utility_chance"]) == (0.1, 0.5)


def test_a_customer_without_a_bottom_has_no_cost_of_one() -> None:
    made = record()
    made = made.model_copy(update={"cost": made.cost.model_copy(update={"bottom": None})})
    row = frame([made]).iloc[0]
    assert pd.isna(row["bottom_flops"])
    assert row["bytes_up"] == made.cost.bytes_up


def test_step_of_the_moment_is_kept() -> None:
    table = frame([record(leaks=[leak(step=40, view="worst"), leak()])])
    assert table["step"].fillna(-9).tolist() == [40, -9]


def test_flags_of_record_and_leak_are_joined() -> None:
    made = record(leaks=[leak(), leak(0.02, "eia-bayes")], dropped_bytes=1)
    assert frame([made])["flags"].tolist() == [
        "truncated-transcript",
        "truncated-transcript,uncertified-attack,below-chance",
    ]


def test_setups_differ_where_training_does_but_not_where_the_seed_does() -> None:
    one, other, longer = record(seed=0), record(seed=1), record(epochs=3)
    setup = frame([one, other, longer])["setup"].tolist()
    assert setup[0] == setup[1] != setup[2]


def test_failures_list_cells_and_attacks_but_not_what_was_skipped() -> None:
    cell = record("sap", {"eta": 1.0}, status="diverged", reason="loss is inf")
    lost = leak(None, status="out-of-memory", reason="", attack="eia-optimise")
    lines = failures(frame([cell, record(seed=3, leaks=[leak(), skipped(), lost])]))
    assert len(lines) == 2
    assert lines[0].endswith("diverged: loss is inf")
    assert "seed 3, eia-optimise: out-of-memory: no reason given" in lines[1]
