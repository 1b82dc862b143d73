"""Plots as files and for pages."""

from __future__ import annotations

from itertools import pairwise
from math import nan
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from leakboard.leaderboards.rendering import (
    Axis,
    Panel,
    Plot,
    Point,
    Reference,
    Series,
    exact,
    save,
    svg_plot,
)
from leakboard.leaderboards.rendering.files import draw_figure, styled
from leakboard.leaderboards.tables.intervals import MISSING, Interval

SAP = Series(
    "SAP",
    [
        Point(Interval(0.9, 0.88, 0.92), Interval(0.5, 0.1, 0.9), "η = 110", url="a.html"),
        Point(Interval(0.4, 0.37, 0.43), Interval(8.0, 7.1, 9.2), "η = 50"),
        Point(MISSING, exact(3.0), "not certified"),
    ],
    "#0077bb",
    line="solid",
)
PAPER = Series("paper", [Point(exact(0.3), exact(2.0), "$x$ <b>")], "#882255", "s", hollow=True)
LOSS = Series(
    "loss",
    [Point(exact(x), Interval(1 / x, 0.9 / x, 1.1 / x)) for x in (1, 2, 4)],
    "#117733",
    "",
    "dashed",
    band=True,
)
PLOT = Plot(
    "What SAP leaks, and what it costs",
    [
        Panel(
            "sst2 <i>",
            Axis("leakage", 0, 1, percent=True),
            Axis("points lost", rises=False),
            [SAP, PAPER],
            [Reference("y", 3.0, "budget"), Reference("x", 0.0, "guessing", to=0.05)],
            remark="better ↗",
        ),
        Panel("loss", Axis("step", log=True), Axis("loss"), [LOSS]),
        Panel("bars", Axis("cost"), Axis(ticks=[(0, "none"), (1, "SAP")]), [SAP]),
    ],
    caption="Means over 3 seeds. " * 20,
)  # fmt: skip


@pytest.fixture(scope="module", params=[3.3, 7.0])
def figure(request):
    with styled():
        return draw_figure(PLOT, request.param)


def test_no_text_is_smaller_than_six_points_cut_or_covered(figure):
    texts = [
        one
        for one in figure.findobj(match=lambda o: hasattr(o, "get_fontsize"))
        if one.get_text() and one.get_visible()
    ]
    assert min(one.get_fontsize() for one in texts) >= 6
    width, height = figure.bbox.size
    page = [*figure.texts, *figure.legends]
    boxes = [one.get_window_extent() for one in [*page, *(ax for ax in figure.axes)]]
    boxes += [ax.get_tightbbox() for ax in figure.axes]
    for box in boxes:
        assert box.x0 >= -1
        assert box.y0 >= -1
        assert box.x1 <= width + 1
        assert box.y1 <= height + 1
    outer = [one.get_window_extent() for one in page]
    assert not [a for n, a in enumerate(outer) for b in outer[n + 1 :] if a.overlaps(b)]
    around = [ax.get_tightbbox() for ax in figure.axes]
    assert not [a for a in around for b in outer if a.overlaps(b)]


def test_names_of_points_cover_no_other_name(figure):
    names = [one.get_window_extent() for ax in figure.axes for one in ax.texts]
    assert len(names) >= 4
    assert not [a for a, b in pairwise(names) if a.overlaps(b)]


def test_the_axes_show_what_was_asked(figure):
    first = figure.axes[0]
    assert first.get_xlim() == (0, 1)
    assert first.get_ylim()[0] > first.get_ylim()[1]  # the cheapest stands on top
    assert first.xaxis.get_major_formatter()(0.5) == "50%"
    assert [one.get_text() for one in figure.axes[2].get_yticklabels()] == ["none", "SAP"]
    assert [one.get_text() for one in figure.legends[0].get_texts()] == [
        "SAP",
        "paper",
        "loss",
        "budget",
        "guessing",
    ]


def test_equal_plots_give_equal_files(tmp_path):
    first, second = (save(PLOT, tmp_path / name / "plot.png") for name in "ab")
    assert [path.name for path in first] == ["plot.png", "plot.svg", "plot.pdf"]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(first, second, strict=True))
    image = np.asarray(Image.open(first[0]).convert("L"))
    assert image.shape[1] == 1400
    assert (image < 128).any()


def shapes_of(page, css_class):
    """All elements of a class, each with its attributes."""
    root = ElementTree.fromstring(str(page))
    return [one for one in root.iter() if one.get("class") == css_class]


def test_a_page_has_every_point_that_was_measured_with_its_intervals_and_link():
    page = svg_plot(PLOT)
    root = ElementTree.fromstring(str(page))
    assert len(root.findall("svg")) == 3
    first = root.find("svg")
    assert (
        len(first.findall(".//*[@class='whisker']")) == 4
    )  # of what is not certified there is none
    assert [one.get("href") for one in first.iter("a")] == ["a.html"]
    titles = [one.text for one in first.iter("title")]
    assert titles == ["η = 110: 0.9, 0.5", "η = 50: 0.4, 8", "$x$ <b>: 0.3, 2"]
    assert len(shapes_of(page, "band")) == 1
    assert len(shapes_of(page, "range")) == len(shapes_of(page, "reference")) == 1
    assert [one.text or one[0].tail.strip() for one in root.find("ul")] == ["SAP", "paper", "loss"]
    assert root.find("figcaption").text.startswith("Means over 3 seeds.")


def test_the_axes_of_a_page_run_as_asked():
    first = ElementTree.fromstring(str(svg_plot(PLOT))).find("svg")
    places = [one.get("transform") for one in first.iter("path") if one.get("class") == "mark"]
    (x1, y1), (x2, y2) = (map(float, one[10:-1].split()) for one in places[:2])
    assert x1 > x2
    assert y1 < y2  # the cheapest stands on top
    texts = [one.text for one in first.iter("text")]
    assert "100 %" in texts
    assert "sst2 <i>" in texts


def test_missing_numbers_are_no_error():
    empty = Series("none", [Point(Interval(nan, nan, nan), exact(1.0), "a")], "#000000")
    plot = Plot("t", [Panel("p", Axis(), Axis(), [empty])])
    assert shapes_of(svg_plot(plot), "mark") == []
    with styled():
        assert draw_figure(plot).axes
