"""Leakage and utility along one swept parameter."""

from __future__ import annotations

from dataclasses import replace

import pytest
from records import leak, record
from sweeps import deep, told

from leakboard.bench.contracts.threat import Goal
from leakboard.leaderboards.figures.drawing import Request, plots
from leakboard.leaderboards.figures.sweep import sweep
from leakboard.leaderboards.tables.record_set import RecordSet


def drawn(records, goal, against, attack="strongest", run=None):
    return sweep(replace(RecordSet.of(records), run=run), goal, against, attack)


def open_and_closed():
    """SAP at three cuts, and the same with its protection off."""
    return [
        one.model_copy(update={"undefended": one.cell.defense.params["eta"] is None})
        for one in deep()
    ]


def test_leakage_and_utility_stand_against_the_cut_with_a_line_for_each_setting():
    plot = drawn(open_and_closed(), Goal.INVERSION, "cut")
    leakage, utility = plot.panels
    assert leakage.x.label == "blocks below the cut"
    assert [value for value, _ in leakage.x.ticks] == [0, 2, 4]
    lines = {one.name: [p.x.value for p in one.points] for one in leakage.series}
    assert lines == {"SAP, η = none": [0, 2, 4], "SAP, η = 50": [0, 2, 4]}
    closed = leakage.series[1].points
    assert [p.y.value for p in closed] == pytest.approx(
        [0.556 / 0.856, 0.36 / 0.66, 0.155 / 0.46], abs=0.02
    )
    assert [p.y.value for p in utility.series[0].points] == pytest.approx([0.8] * 3)
    assert len({one.colour for one in leakage.series}) == 2


def retrained(one):
    """The same record after another number of epochs."""
    train = one.cell.train.model_copy(update={"epochs": 37})
    cell = one.cell.model_copy(update={"train": train})
    return one.model_copy(update={"cell": cell, "key": cell.key})


def test_no_line_of_a_sweep_joins_settings_that_were_trained_differently():
    records = [retrained(one) if one.cell.cut == 4 else one for one in open_and_closed()]
    leakage, _ = drawn(records, Goal.INVERSION, "cut").panels
    lines = {}
    for one in leakage.series:
        lines.setdefault(one.name, []).append([p.x.value for p in one.points])
    assert lines["SAP, η = 50"] == [[0, 2], [4]]


def test_the_papers_sweep_of_the_same_parameter_stands_below():
    plot = drawn(open_and_closed(), Goal.INVERSION, "cut", run="sap-figure4")
    assert [one.title for one in plot.panels] == [
        *["SST-2 · minilm"] * 2,
        *["SST-2 · SAP, Table 4, roberta-large"] * 2,
    ]
    printed = plot.panels[2].series
    assert all(one.hollow and one.name.endswith("as printed") for one in printed)
    assert len({one.colour for one in printed}) == len(printed)
    assert [value for value, _ in plot.panels[2].x.ticks] == [2, 4, 6, 8]


def test_of_attacks_success_alone_is_drawn_since_utility_does_not_depend_on_them():
    plot = drawn(told(), Goal.ATTRIBUTE, "labelled")
    (panel,) = plot.panels
    assert panel.title == "reviews · minilm · gender"
    assert panel.x.log
    assert {one.name: [p.y.value for p in one.points] for one in panel.series} == {
        "aia-mlp": [0.5, 0.6, 0.7],
        "aia-finetune": [0.4, 0.65, 0.8],
    }
    (one,) = drawn(told(), Goal.ATTRIBUTE, "labelled", "aia-mlp").panels[0].series
    assert one.name == "aia-mlp"
    assert panel.references[0].value == 0.4


def test_values_that_are_no_numbers_stand_beside_each_other_with_none_at_the_end():
    records = [record("sap", {"bottom": word}, leaks=[leak(0.5)]) for word in ("b", None, "a")]
    panel = drawn(records, Goal.INVERSION, "bottom").panels[0]
    assert panel.x.ticks == [(0.0, "a"), (1.0, "b"), (2.0, "none")]


def test_the_file_is_named_after_goal_and_parameter():
    found = RecordSet.of(open_and_closed(), "mine")
    assert list(plots(found, Request(against="cut"))) == ["mine-inputs-by-cut"]
