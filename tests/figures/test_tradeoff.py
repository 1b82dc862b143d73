"""Leakage against cost: the points of the results table, and what is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from experiments import compared
from records import leak, record

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.threat import Goal
from leakboard.leaderboards.figures.drawing import Request, draw, plots
from leakboard.leaderboards.figures.kinds.tradeoff import tradeoff
from leakboard.leaderboards.figures.series import lines
from leakboard.leaderboards.tables.curves import curves
from leakboard.leaderboards.tables.record_set import RecordSet
from leakboard.leaderboards.tables.results import results_table


def drawn(*args, **kwargs):
    return tradeoff(results_table(compared(*args, **kwargs)), Goal.INVERSION)


def test_points_are_leakage_and_points_lost_in_the_order_of_the_knob():
    (panel,) = drawn().panels
    sap, undefended = panel.series
    assert (sap.name, undefended.name) == ("SAP", "undefended")
    assert [one.y.value for one in sap.points] == pytest.approx([20, 5, 1])
    assert [one.x.value for one in sap.points] == pytest.approx(
        [(s + 0.002 - 0.05) / 0.94 for s in (0.2, 0.5, 0.9)], abs=1e-3
    )
    assert [one.label for one in sap.points] == ["η = 50", "75", "η = 110"]
    assert [(one.x.value, one.y.value) for one in undefended.points] == [(1.0, 0.0)]
    assert panel.title == "SST-2 · minilm"
    assert not panel.y.rises  # the cheapest stands on top


def retrained(record):
    """The same record after another number of epochs."""
    train = record.cell.train.model_copy(update={"epochs": 37})
    cell = record.cell.model_copy(update={"train": train})
    return record.model_copy(update={"cell": cell, "key": cell.key})


def test_no_line_joins_settings_that_were_trained_differently():
    records = [
        retrained(one) if one.cell.defense.params.get("eta") == 50 else one for one in compared()
    ]
    plot = tradeoff(results_table(records), Goal.INVERSION)
    joined, alone = plot.panels[0].series[:2]
    assert [one.label for one in joined.points] == ["η = 75", "η = 110"]
    assert [one.label for one in alone.points] == ["η = 50"]
    assert (joined.line, alone.line) == ("solid", "")
    assert joined.name == alone.name == "SAP"  # one entry of the legend
    assert "Lines join settings of equal training." in plot.caption


def test_variants_of_a_defense_have_markers_and_names_of_their_own():
    records = [one for one in compared() if one.cell.defense.name != "sap"]
    for one in compared():
        for bottom in ("frozen", "trainable") if one not in records else ():
            defense = one.cell.defense.model_copy(deep=True)
            defense.params["bottom"] = bottom
            cell = one.cell.model_copy(update={"defense": defense})
            records.append(one.model_copy(update={"cell": cell, "key": cell.key}))
    series = tradeoff(results_table(records), Goal.INVERSION).panels[0].series[:-1]
    named = {(one.name, one.marker) for one in series}
    assert {name for name, _ in named} == {"SAP (frozen)", "SAP (trainable)"}
    assert len({marker for _, marker in named}) == 2


def test_the_style_of_a_variant_does_not_depend_on_the_order_of_the_settings():
    records = [
        record("sap", {"eta": eta, "bottom": bottom}, seed, 0.8, [leak(0.5)])
        for seed in (0, 1)
        for eta in (50.0, 75.0)
        for bottom in ("frozen", "trainable")
    ]
    (curve,) = curves(results_table(records))
    styles = [
        {
            one.name: (one.marker, one.line)
            for one in lines(made, lambda each: (each.cost, each.cost))
        }
        for made in (curve, replace(curve, results=curve.results[::-1]))
    ]
    assert styles[0] == styles[1]
    assert len(set(styles[0].values())) == 2


def test_the_title_says_what_is_drawn_and_the_caption_how():
    plot = drawn()
    assert plot.title == "Leakage of inputs and its cost"
    assert "3 seeds, with 95 % intervals" in plot.caption


def test_each_task_has_its_panel():
    records = compared() + compared(task="mrpc")
    plot = tradeoff(results_table(records), Goal.INVERSION)
    assert {panel.title for panel in plot.panels} == {"SST-2 · minilm", "MRPC · minilm"}


def test_a_setting_that_learnt_nothing_is_not_drawn():
    (panel,) = drawn({75.0: (0.5, 0.85), 10.0: (0.1, 0.49)}).panels
    assert [one.detail for one in panel.series[0].points] == ["SAP, η = 75"]


def test_where_nothing_has_a_cost_utility_stands_in_its_place_and_the_caption_says_why():
    plot = drawn({10.0: (0.1, 0.49)})
    (panel,) = plot.panels
    assert plot.title == "Leakage of inputs and utility"
    assert "No cost can be compared: SAP, η = 10: its utility is not clearly above" in plot.caption
    assert [one.y.value for one in panel.series[0].points] == pytest.approx([0.492])
    assert panel.series[-1].points[0].y.value == pytest.approx(0.902)
    assert panel.references[0].value == 0.5


@pytest.mark.parametrize(
    ("records", "told"),
    [
        (compared(twin=0.1), "not certified; even without the defense, no attack has an advantage"),
        ([], "no attack on inputs read anything"),
    ],
    ids=["blind", "none"],
)
def test_nothing_to_plot_is_said_with_its_reason(records, told):
    with pytest.raises(LeakboardError, match=told):
        tradeoff(results_table(records), Goal.INVERSION)


def test_the_first_goal_that_a_defense_is_made_for_is_drawn_unless_another_is_asked_for():
    found = RecordSet.of(compared(labels=0.95), "mine")
    assert list(plots(found, Request())) == ["mine-inputs"]
    (plot,) = plots(found, Request(goal="label")).values()  # nobody here is made to hide labels
    assert plot.title == "Leakage of labels and its cost"
    assert [one.x.value for one in plot.panels[0].series[0].points] == pytest.approx([1, 1, 1])


def test_one_attack_can_decide():
    found = RecordSet.of(compared(), "mine")
    (plot,) = plots(found, Request(attack="eia-nn")).values()
    assert plot.panels[0].series[0].points[1].x.value == pytest.approx(0.481, abs=1e-2)
    with pytest.raises(LeakboardError, match="Did you mean 'eia-nn'"):
        plots(found, Request(attack="eia-n"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"kind": "tradeof"}, "kind: unknown 'tradeof'. Did you mean 'tradeoff'"),
        ({"goal": "lables"}, "Did you mean 'labels'"),
        ({"against": "etta"}, "Did you mean 'eta'"),
        ({"width": 0.5}, "width: expected inches from 2 to 40, or column or text, got 0.5"),
        ({"width": "colum"}, "or column or text, got colum"),
        ({"formats": "pdf,pngg"}, "format: unknown 'pngg'. Did you mean 'png'"),
    ],
)
def test_an_unknown_word_names_the_nearest(tmp_path, words, told):
    with pytest.raises(LeakboardError, match=told):
        draw(RecordSet.of(compared(), "mine"), tmp_path, Request(**words))


def test_files_bear_the_name_of_the_records_and_equal_records_give_equal_bytes(tmp_path):
    found = RecordSet.of(compared(), "a.b")
    first, second = (draw(found, tmp_path / name, Request()) for name in "xy")
    kinds = ("png", "svg", "pdf", "txt")
    assert [path.name for path in first] == [f"a.b-inputs.{kind}" for kind in kinds]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(first, second, strict=True))
