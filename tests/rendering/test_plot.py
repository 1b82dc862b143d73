"""Plots as files and for pages."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from PIL import Image

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.leaderboards.rendering import (
    Axis,
    Panel,
    Plot,
    Point,
    Reference,
    Series,
    draw_figure,
    draw_on_axes,
    save,
    styled,
    svg_plot,
)
from leakboard.leaderboards.rendering.plot import PALE, split_plot
from leakboard.leaderboards.tables.intervals import MISSING, Interval

SAP = Series(
    "SAP",
    [
        Point(Interval(0.9, 0.88, 0.92), Interval(0.5, 0.1, 0.9), "η = 110", url="a.html"),
        Point(Interval(0.4, 0.37, 0.43), Interval(8.0, 7.1, 9.2), "η = 50"),
        Point.of(MISSING, 3.0, "not certified"),
    ],
    "#0077bb",
    line="solid",
)
PAPER = Series("paper", [Point.of(0.3, 2.0, "$x$ <b>")], "#882255", "s", hollow=True)
LOSS = Series(
    "loss",
    [Point.of(x, Interval(1 / x, 0.9 / x, 1.1 / x)) for x in (1, 2, 4)],
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
            [Reference("y", 3.0, "budget"), Reference("x", 0.0, "guessing")],
            remark="better ↗",
        ),
        Panel("loss", Axis("step", log=True), Axis("loss"), [LOSS]),
        Panel("bars", Axis("cost"), Axis(ticks=[(0, "none"), (1, "SAP")]), [SAP]),
    ],
    caption="Means over 3 seeds. " * 20,
)  # fmt: skip


def along(name, group, n=3):
    points = [Point.of(x / n, Interval(x, x - 0.5, x + 0.5)) for x in range(n)]
    return Series(name, points, "#0077bb", line="solid", band=True, group=group)


NAMES = [(f"SAP (a long name of the variant {n})", "SAP") for n in range(5)]
NAMES += [(f"P³EFT, weight = {n}", "P³EFT") for n in range(3)] + [("DC", "DC")]
CROWDED = Plot(
    "Training",
    [
        Panel(f"sst2 · minilm\n{what}", Axis("step"), Axis(what), [along(*one) for one in NAMES])
        for what in ("activations", "gradients", "loss")
    ],
    columns=3,
)
TITLE = "What SAP leaks, and what it costs, in a title that is longer than a column"


@pytest.fixture(
    scope="module",
    params=[(plot, width) for plot in (PLOT, CROWDED) for width in (3.3, 7.0)],
    ids=["column", "text", "crowded-column", "crowded-text"],
)
def figure(request):
    plot, width = request.param
    with styled():
        return draw_figure(plot, width, TITLE)


def test_no_text_is_smaller_than_six_points_cut_or_covered(figure):
    texts = [
        one
        for one in figure.findobj(match=lambda o: hasattr(o, "get_fontsize"))
        if one.get_text() and one.get_visible()
    ]
    assert min(one.get_fontsize() for one in texts) >= 6
    width, height = figure.bbox.size
    outer = [one.get_window_extent() for one in [*figure.texts, *figure.findobj(Legend)]]
    around = [ax.get_tightbbox() for ax in figure.axes]
    for box in [*outer, *around]:
        assert box.x0 >= -1
        assert box.y0 >= -1
        assert box.x1 <= width + 1
        assert box.y1 <= height + 1
    boxes = [*outer, *around]
    assert not [a for n, a in enumerate(boxes) for b in boxes[n + 1 :] if a.overlaps(b)]


def test_no_legend_has_more_than_eight_names_and_all_names_are_in_one(figure):
    legends = [[one.get_text() for one in each.get_texts()] for each in figure.findobj(Legend)]
    assert max(map(len, legends)) <= 8
    names = {text.replace("\n", " ") for each in legends for text in each}
    assert len(legends) == 1 or names == {name for name, _ in NAMES}


def test_bands_end_at_the_frame(figure):
    for ax in figure.axes:
        for band in ax.collections:
            assert band.get_clip_on()
            assert band.get_clip_box().bounds == ax.bbox.bounds


def test_a_split_plot_keeps_groups_together_and_pale_copies_of_the_others():
    first, second = split_plot(CROWDED)
    names = [[one.name for one in part.panels[0].series if one.name] for part in (first, second)]
    assert names == [[name for name, group in NAMES if group != "DC"], ["DC"]]
    pale = [one for one in second.panels[2].series if not one.name]
    assert len(pale) == 8
    assert {one.colour for one in pale} == {PALE}
    assert split_plot(PLOT) == [PLOT]


@pytest.mark.parametrize("width", [3.3, 7.0])
def test_names_of_points_cover_no_other_name(width):
    with styled():
        figure = draw_figure(PLOT, width)
    names = [one.get_window_extent() for ax in figure.axes for one in ax.texts]
    assert len(names) >= 4
    assert not [a for a, b in pairwise(names) if a.overlaps(b)]


def test_the_axes_show_what_was_asked():
    with styled():
        figure = draw_figure(PLOT)
    first = figure.axes[0]
    assert first.get_xlim() == (0, 1)
    assert first.get_ylim()[0] > first.get_ylim()[1]  # the cheapest stands on top
    assert first.xaxis.get_major_formatter()(0.5) == "50%"
    assert [one.get_text() for one in figure.axes[2].get_yticklabels()] == ["none", "SAP"]
    assert [one.get_text() for one in figure.findobj(Legend)[0].get_texts()] == [
        "SAP",
        "paper",
        "loss",
        "budget",
        "guessing",
    ]


def test_equal_plots_give_equal_files(tmp_path):
    first, second = (save(PLOT, tmp_path / name / "plot.png") for name in "ab")
    assert [path.name for path in first] == ["plot.png", "plot.svg", "plot.pdf", "plot.txt"]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(first, second, strict=True))
    image = np.asarray(Image.open(first[0]).convert("L"))
    assert image.shape[1] == 1400
    assert (image < 128).any()


def test_a_full_disk_is_named_and_leaves_no_half_figure(tmp_path, monkeypatch):
    def half_written(figure, file, **kwargs):
        file.write_text("ha")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", half_written)
    with pytest.raises(OSError, match="No space left") as error:
        save(PLOT, tmp_path / "plot")
    assert error.value.filename == str(tmp_path / "plot.png")
    assert not list(tmp_path.iterdir())


def test_the_caption_is_in_a_file_beside_the_figure_and_not_in_it(tmp_path):
    *_, caption = save(PLOT, tmp_path / "plot", kinds=["svg"])
    assert caption.read_text("utf-8").startswith(f"{PLOT.title}.\n\nMeans over 3 seeds.")
    picture = (tmp_path / "plot.svg").read_text("utf-8")
    assert "Means over" not in picture
    assert PLOT.title not in picture


def test_a_style_changes_the_figure_and_an_unknown_one_names_the_nearest(tmp_path):
    own = tmp_path / "paper.mplstyle"
    own.write_text("axes.grid: False\nfont.size: 11\n", "utf-8")
    with styled(str(own)):
        axis = draw_figure(PLOT).axes[0].xaxis
    assert axis.label.get_fontsize() == 11
    assert not axis.get_gridlines()[0].get_visible()
    with pytest.raises(LeakboardError, match="Did you mean 'ggplot'"):
        styled("gplot")


def test_a_panel_is_drawn_on_the_axes_and_in_the_style_of_the_caller():
    with style.context("default"):
        figure = Figure(figsize=(4, 3))
        ax = figure.add_subplot()
    draw_on_axes(PLOT.panels[0], ax)
    assert ax.get_xlabel() == "leakage"
    assert [one.get_text() for one in ax.get_legend().get_texts()][:2] == ["SAP", "paper"]
    assert {one.get_text() for one in ax.texts} >= {"η = 110", "η = 50"}
    assert figure.get_size_inches().tolist() == [4, 3]


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
    assert len(shapes_of(page, "reference")) == 2
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
    empty = Series("none", [Point.of(MISSING, 1.0, "a")], "#000000")
    plot = Plot("t", [Panel("p", Axis(), Axis(), [empty])])
    assert shapes_of(svg_plot(plot), "mark") == []
    with styled():
        assert draw_figure(plot).axes
