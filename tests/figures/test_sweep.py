"""The figure against one swept parameter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from records import leak, record
from sweeps import deep, told

from leakboard.bench.contracts.record import Estimate
from leakboard.bench.contracts.threat import Goal
from leakboard.bench.tasks.planting import CEILING
from leakboard.leaderboards.figures.sweep import sweep
from leakboard.leaderboards.tables.frame import frame
from leakboard.leaderboards.tables.printed import printed
from leakboard.leaderboards.tables.sweeps import swept

pytestmark = pytest.mark.usefixtures("certified")


def words_of(svg: Path) -> str:
    """The texts of a figure; the letters are outlines, each text stands in a comment beside them."""
    return " ".join(re.findall(r"<!-- (.*?) -->", svg.read_text("utf-8")))


def test_the_figure_of_cuts_shows_both_quantities_ours_and_the_papers(tmp_path):
    means = swept(frame(deep()), "inversion", "cut")
    known = printed("SAP", ["Table 4"])
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
    drawn = saved_by("sweep")
    same = [
        record("sap", {"eta": eta}, 0, 0.6, [leak(1.0)], "sst2", cut=cut)
        for eta in (None, 50.0)
        for cut in (1, 2)
    ]
    sweep(swept(frame(same), "inversion", "cut"), "cut", tmp_path, "T", printed("SAP", ["Table 4"]))
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


def test_the_intervals_of_an_attacks_success_end_on_its_panel(tmp_path, saved_by):
    drawn = saved_by("sweep")
    sweep(swept(frame(told()), "attribute", "labelled"), "labelled", tmp_path / "p", "T")
    (ax,) = drawn[0].axes
    ends = [end for bars in ax.collections for bar in bars.get_segments() for end in bar[:, 1]]
    assert ends
    bottom, top = ax.get_ylim()
    assert bottom < min(ends) < max(ends) < top


def test_values_that_are_no_numbers_stand_beside_each_other_with_none_at_the_end(tmp_path):
    text = words_of(sweep(swept(frame(deep()), "inversion", "eta"), "eta", tmp_path / "p", "T")[1])
    assert re.search(r"\b50 none\b", text)
    assert "cut = 2" in text


def test_chance_of_an_exposure_stands_where_guessing_leaves_it(tmp_path, saved_by):
    drawn = saved_by("sweep")
    bits = Estimate(value=9.0, low=8.0, high=10.0, n=3, chance=1.443)
    told = {"success": bits, "metric": "exposure", "ceiling": CEILING, "view": "planted 10 times"}
    exposed = leak(attack="canary-exposure", goal=Goal.MEMORISATION).model_copy(update=told)
    made = [record("dpsgd", {"epsilon": e}, 0, 0.6, [exposed], "texts") for e in (1.0, 8.0)]
    sweep(swept(frame(made), "memorisation", "epsilon"), "epsilon", tmp_path, "T", None)
    dotted = [line for line in drawn[0].axes[0].lines if line.get_linestyle() == ":"]
    assert [line.get_ydata().tolist() for line in dotted] == [
        pytest.approx([1 - 1.443 / CEILING] * 2)
    ]
