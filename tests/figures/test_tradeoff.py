"""The figure of what privacy costs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from matplotlib.axes import Axes
from records import record, sweep

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.leaderboards.figures.curves import measured_curves
from leakboard.leaderboards.figures.kinds.tradeoff import tradeoff
from leakboard.leaderboards.figures.legend import keys
from leakboard.leaderboards.tables.frame import frame
from leakboard.leaderboards.tables.points import points
from leakboard.leaderboards.tables.printed import printed_points

pytestmark = pytest.mark.usefixtures("few_methods", "certified")


def test_two_renderings_have_the_same_bytes(tmp_path: Path) -> None:
    found = points(frame([*sweep(), *sweep("mrpc")]), "inversion")
    once = tradeoff(found, tmp_path / "a" / "plot.png", "Title", printed_points("SAP", ["Table 3"]))
    again = tradeoff(found, tmp_path / "b" / "plot", "Title", printed_points("SAP", ["Table 3"]))
    assert [p.name for p in once] == ["plot.png", "plot.svg", "plot.pdf"]
    assert [p.read_bytes() for p in once] == [p.read_bytes() for p in again]


def test_a_dot_in_the_name_is_no_suffix(tmp_path: Path) -> None:
    made = tradeoff(points(frame(sweep()), "inversion"), tmp_path / "eta.75", "Title")
    assert [p.name for p in made] == ["eta.75.png", "eta.75.svg", "eta.75.pdf"]


def test_the_figure_says_what_it_shows(tmp_path: Path) -> None:
    found = points(frame(sweep()), "inversion")
    svg = tradeoff(found, tmp_path / "p", "My title", printed_points("SAP", ["Table 3"]))[1]
    # The letters are drawn as outlines; each text stands in a comment beside them.
    words = re.findall(r"<!-- (.*?) -->", svg.read_text("utf-8"))
    text = " ".join(words)
    assert {"My title", "sst2", "better ↗", "none", "η = 50", "undefended"} <= set(words)
    assert "Empirical privacy against inversion →" in text
    assert "1 − token accuracy" in text
    assert "Utility: accuracy →" in text
    assert "at most 2,000 examples per split; 3 seeds" in text
    assert "Hollow points are as printed, for roberta-large" in text


def test_the_untuned_model_is_drawn_and_far_below_it_is_told(saved_by) -> None:
    figures = saved_by("kinds.tradeoff")

    def drawn(utility: float) -> Axes:
        untuned = [record("untuned", {}, s, utility, [], "sst2") for s in range(3)]
        tradeoff(points(frame([*sweep(), *untuned]), "inversion"), Path("p"), "T")
        return figures[-1].axes[0]

    near = drawn(0.6)
    (line,) = [one for one in near.lines if list(one.get_ydata()) == [0.6, 0.6]]
    assert near.get_ylim()[0] < line.get_ydata()[0]
    far = drawn(0.1)
    assert far.get_ylim()[0] > 0.1
    assert "untuned model: 0.100 ↓" in [text.get_text() for text in far.texts]
    assert "untuned model" in [text.get_text() for text in figures[-1].legends[1].get_texts()]


def test_other_tasks_and_goals_of_a_paper_are_not_drawn(tmp_path: Path) -> None:
    found = points(frame(sweep("reviews")), "inversion")
    bare = tradeoff(found, tmp_path / "bare", "T")
    with_paper = tradeoff(found, tmp_path / "paper", "T", printed_points("SAP", ["Table 3"]))
    assert bare[0].read_bytes() == with_paper[0].read_bytes()


def test_a_point_named_directly_is_not_named_again_in_the_legend() -> None:
    found = measured_curves(points(frame(sweep()), "inversion"))
    assert [handle.get_label() for handle in keys(found)] == ["sap"]


def test_nothing_to_plot_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(LeakboardError, match="no attack of this goal has an ok result"):
        tradeoff(points(frame(sweep()), "label"), tmp_path / "p", "Title")
    made = [record(utility=None)]
    with pytest.raises(LeakboardError, match="none of the 1 points has a utility"):
        tradeoff(points(frame(made), "inversion"), tmp_path / "p", "Title")
    assert list(tmp_path.iterdir()) == []
