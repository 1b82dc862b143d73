"""Figures against one swept parameter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from records import leak, record

from bench.contracts.errors import LeakboardError
from bench.contracts.estimates import Estimate
from bench.contracts.record import Record
from bench.contracts.threat import Goal
from bench.tasks.planting import CEILING
from leaderboards.figures import sweep as sweep_plot
from leaderboards.figures.sweep import sweep
from leaderboards.tables.frame import frame
from leaderboards.tables.published import published
from leaderboards.tables.sweeps import printed_sweep, swept


def deep(seeds: int = 2) -> list[Record]:
    """SAP at two settings and three cuts; another attack decides at each."""
    made = []
    for seed in range(seeds):
        for eta, lost in ((None, 0.0), (50.0, 0.3)):
            for cut in (4, 0, 2):
                found = [leak(0.9 - lost - 0.1 * cut + 0.01 * seed, attack="eia-optimise")]
                found.append(leak(0.8 - lost, attack="eia-nn") if cut == 0 else leak(0.01))
                params = {"eta": eta, "bottom": "frozen"}
                made.append(record("sap", params, seed, 0.8, found, "sst2", cut=cut))
    return made


def told(attribute: str = "gender") -> list[Record]:
    """Two attacks at three shares: the mean network is ahead where little is labelled."""
    found = [
        leak(s, attack=a, goal=Goal.ATTRIBUTE, attribute=attribute, params={"labelled": n}, chance=0.4)
        for a, successes in (("aia-mlp", (0.5, 0.6, 0.7)), ("aia-finetune", (0.4, 0.65, 0.8)))
        for n, s in zip((0.01, 0.1, 0.5), successes, strict=True)
    ]  # fmt: skip
    return [record("sap", {"eta": 75.0}, leaks=[*found, leak(0.9)])]


def words_of(svg: Path) -> str:
    """The texts of a figure; the letters are outlines, each text stands in a comment beside them."""
    return " ".join(re.findall(r"<!-- (.*?) -->", svg.read_text("utf-8")))


def test_a_line_is_what_differs_in_nothing_but_the_swept_parameter_and_the_seed():
    means = swept(frame(deep()), "inversion", "cut")
    assert dict(means.groupby("line")["x"].agg(sorted)) == {
        "η = none": [0, 2, 4],
        "η = 50": [0, 2, 4],
    }
    open_line = means[means["line"] == "η = none"].set_index("x")
    assert open_line.loc[2, "ep"] == pytest.approx(1 - 0.705)
    assert set(means["n_seeds"]) == {2}


def test_of_an_attacks_parameter_the_strongest_is_chosen_at_each_value():
    means = swept(frame(told()), "attribute", "labelled").set_index("x")
    assert means["success"].to_dict() == {0.01: 0.5, 0.1: 0.65, 0.5: 0.8}
    assert means["attack"].tolist() == ["aia-mlp", "aia-finetune", "aia-finetune"]
    named = swept(frame(told()), "attribute", "labelled", "paper").set_index("x")
    assert named["success"].to_dict() == {0.01: 0.4, 0.1: 0.65, 0.5: 0.8}


def test_an_unknown_parameter_is_told_the_nearest_one():
    with pytest.raises(LeakboardError, match=r"no parameter 'labeled'.*Did you mean 'labelled'"):
        swept(frame(told()), "attribute", "labeled")


def test_a_goal_without_results_is_told():
    with pytest.raises(LeakboardError, match="no attack of the goal 'label' has an ok result"):
        swept(frame(told()), "label", "cut")


def test_printed_cuts_are_points_of_the_lines_of_their_eta():
    means = swept(frame(deep()), "inversion", "cut")
    known = printed_sweep(published("SAP", ["Table 4"]), "cut", means)
    assert len(known) == 28
    line = known[known["line"] == "η = 25"].set_index("x")
    assert line["ep"].to_dict() == pytest.approx({2: 0.2397, 4: 0.4184, 6: 0.7014, 8: 0.8478})
    # Table 3 has one cut, which is no sweep; and no paper prints inversion as attribute inference.
    assert printed_sweep(published("SAP", ["Table 3"]), "cut", means).empty
    attributes = swept(frame(told()), "attribute", "cut")
    assert printed_sweep(published("SAP", ["Table 4"]), "cut", attributes).empty


def test_the_figure_of_cuts_shows_both_quantities_ours_and_the_papers(tmp_path):
    means = swept(frame(deep()), "inversion", "cut")
    known = published("SAP", ["Table 4"])
    svg = sweep(means, "cut", tmp_path / "a" / "p", "My title", known, "Depths differ.")[1]
    text = words_of(svg)
    for wanted in (
        "My title",
        "sst2 · minilm, measured here",
        "sst2 · roberta-large (SAP, Table 4)",
        "Empirical privacy against",
        "Utility: accuracy →",
        "Blocks below the cut, k",
        "chance level",
        "attack: eia-optimise.",
        "Depths differ.",
    ):
        assert wanted in text
    again = sweep(means, "cut", tmp_path / "b" / "p", "My title", known, "Depths differ.")[1]
    assert again.read_bytes() == svg.read_bytes()


def test_no_point_is_off_its_panel_and_equal_points_stand_apart(tmp_path, saved_by):
    drawn = saved_by(sweep_plot)
    same = [
        record("sap", {"eta": eta}, 0, 0.6, [leak(1.0)], "sst2", cut=cut)
        for eta in (None, 50.0)
        for cut in (1, 2)
    ]
    sweep(
        swept(frame(same), "inversion", "cut"), "cut", tmp_path, "T", published("SAP", ["Table 4"])
    )
    (figure,) = drawn
    figure.draw_without_rendering()
    for ax in figure.axes:
        marked = [line for line in ax.lines if line.get_marker() != "None"]
        pixels = [line.get_transform().transform(line.get_xydata()) for line in marked]
        assert marked
        left, bottom, right, top = ax.bbox.extents
        for xy in pixels:
            assert ((xy >= [left, bottom]) & (xy <= [right, top])).all()
        if len(pixels) == 2:
            assert (abs(pixels[0][:, 0] - pixels[1][:, 0]) > 2).all()


def test_the_figure_of_an_attacks_parameter_shows_success_for_each_attribute(tmp_path):
    means = swept(frame([*told(), *told("age")]), "attribute", "labelled")
    text = words_of(sweep(means, "labelled", tmp_path / "p", "T")[1])
    assert "reviews: gender" in text
    assert "reviews: age" in text
    assert "Success: " in text
    assert "Utility" not in text


def test_values_that_are_no_numbers_stand_beside_each_other_with_none_at_the_end(tmp_path):
    text = words_of(sweep(swept(frame(deep()), "inversion", "eta"), "eta", tmp_path / "p", "T")[1])
    assert re.search(r"\b50 none\b", text)
    assert "cut = 2" in text


def test_chance_of_an_exposure_stands_where_guessing_leaves_it(tmp_path, saved_by):
    drawn = saved_by(sweep_plot)
    bits = Estimate(value=9.0, low=8.0, high=10.0, n=3, chance=1.443)
    told = {"success": bits, "metric": "exposure", "ceiling": CEILING, "view": "planted 10 times"}
    exposed = leak(attack="canary-exposure", goal=Goal.MEMORISATION).model_copy(update=told)
    made = [record("dpsgd", {"epsilon": e}, 0, 0.6, [exposed], "texts") for e in (1.0, 8.0)]
    sweep(swept(frame(made), "memorisation", "epsilon"), "epsilon", tmp_path, "T", None)
    dotted = [line for line in drawn[0].axes[0].lines if line.get_linestyle() == ":"]
    assert [line.get_ydata().tolist() for line in dotted] == [
        pytest.approx([1 - 1.443 / CEILING] * 2)
    ]
