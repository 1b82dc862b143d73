"""Plots as files, drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from math import isnan
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator, PercentFormatter, StrMethodFormatter
from matplotlib.transforms import Bbox

from leakboard.leaderboards.rendering.labels import Floats, Label, place_labels
from leakboard.leaderboards.rendering.plot import GREY, Axis, Panel, Plot, Reference, Series

SMALL = 6.5
"""Font size of the smallest text in points."""
WIDTH = 7.0
"""Default width in inches, the text width of most two-column papers."""
LEAST = 2.2
"""Smallest width of a panel of weight 1 in inches; narrow figures have fewer panels per row."""
METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
DASHES: dict[str, Any] = {
    "solid": "-",
    "dashed": (0, (4, 2.5)),
    "dotted": (0, (1, 1.5)),
    "dashdot": (0, (6, 1.5, 1, 1.5)),
    "": "none",
}
RC = {
    "figure.dpi": 200,
    "font.family": "DejaVu Sans",
    "font.size": 7.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.titlesize": 8,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#ececec",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "legend.borderaxespad": 0,
    "legend.borderpad": 0.1,
    # Without a salt the ids in an SVG are random; fonttype 42 keeps the text of a PDF searchable.
    "svg.hashsalt": "leakboard",
    "pdf.fonttype": 42,
    # Names from records may contain dollar signs, which start no formula.
    "text.parse_math": False,
}


def save(
    plot: Plot, out: Path, width: float = WIDTH, kinds: Sequence[str] = tuple(METADATA)
) -> list[Path]:
    """Draws a plot and writes its files; equal plots give equal bytes.

    Args:
        out: path of the files; a suffix of a picture is replaced.
        width: width in inches; font sizes stay unchanged.
        kinds: kinds of files: png (200 dpi), svg, pdf.
    """
    stem = out.with_suffix("") if out.suffix[1:] in METADATA else out
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in kinds]
    with styled():
        figure = draw_figure(plot, width)
        for path, kind in zip(paths, kinds, strict=True):
            figure.savefig(path, dpi=200, metadata=METADATA[kind])
    return paths


def styled() -> AbstractContextManager[None]:
    """Context with the style of all figures."""
    return style.context(["default", RC])


def draw_figure(plot: Plot, width: float = WIDTH) -> Figure:
    """A figure with title, rows of panels, legend and caption, from top to bottom."""
    weight = max(sum(panel.weight for panel in row) for row in plot.rows)
    columns = plot.columns
    if width / weight < LEAST:
        columns = max(1, int(width // LEAST))
    rows = [plot.panels[n : n + columns] for n in range(0, len(plot.panels), columns)]
    heights = [max(panel.height for panel in row) for row in rows]
    handles = _legend(plot)
    per_row = _per_row(handles, width)
    caption = wrap(plot.caption, int((width - 0.1) / 0.0485))
    title = wrap(plot.title, int(width / 0.088))
    legend = 0.15 * -(-len(handles) // per_row) + 0.08 if handles else 0.0
    foot, head = legend + 0.125 * len(caption) + 0.1, 0.17 * len(title) + 0.1
    height = sum(heights) + foot + head
    figure = Figure(figsize=(width, height), layout="constrained")
    engine: Any = figure.get_layout_engine()
    engine.set(rect=(0, foot / height, 1, 1 - (foot + head) / height), hspace=0.06, wspace=0.04)
    grid = figure.add_gridspec(len(rows), 1, height_ratios=heights)
    axes: list[Axes] = []
    for place, row in enumerate(rows):
        weights = [panel.weight for panel in row]
        weights += [rows[0][n].weight for n in range(len(row), len(rows[0]))]
        inner = grid[place].subgridspec(1, len(weights), width_ratios=weights)
        axes += [figure.add_subplot(inner[n]) for n in range(len(row))]
    for ax, panel in zip(axes, plot.panels, strict=True):
        _panel(ax, panel)
    figure.text(
        0.5, 1 - 0.06 / height, "\n".join(title), fontsize=9.5, weight="bold", ha="center", va="top"
    )
    small: dict[str, Any] = {"fontsize": SMALL, "color": GREY, "va": "bottom"}
    figure.text(0.06 / width, 0.06 / height, "\n".join(caption), **small)
    if handles:
        figure.legend(
            handles=handles,
            loc="upper center",
            bbox_to_anchor=(0.5, (foot - 0.02) / height),
            ncols=per_row,
            handlelength=3.0,
        ).set_in_layout(False)
    _settle(figure)
    for ax, panel in zip(axes, plot.panels, strict=True):
        _label_points(ax, panel)
    return figure


def _settle(figure: Figure) -> None:
    """Computes the layout once and rounds it, so that files are equal in every run and format.

    The layout engine solves equations in a varying order, which changes rounding errors.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine(None)
    for ax in figure.axes:
        ax.set_position(Bbox(ax.get_position().get_points().round(6)))


def _panel(ax: Axes, panel: Panel) -> None:
    ax.set_title(panel.title)
    for reference in panel.references:
        across: dict[str, Any] = {"color": GREY, "zorder": 1}
        draw_line, draw_range = (
            (ax.axvline, ax.axvspan) if reference.axis == "x" else (ax.axhline, ax.axhspan)
        )
        if reference.to is None:
            draw_line(reference.value, linewidth=0.8, linestyle=DASHES[reference.line], **across)
        else:
            draw_range(reference.value, reference.to, alpha=0.1, linewidth=0, **across)
    for series in panel.series:
        _series(ax, series)
    _scale(ax, "x", panel.x)
    _scale(ax, "y", panel.y)
    if panel.remark:
        ax.text(0.01, 0.01, panel.remark, color=GREY, fontsize=SMALL, transform=ax.transAxes)


def _series(ax: Axes, series: Series) -> None:
    points = [point for point in series.points if not (point.x.is_missing or point.y.is_missing)]
    if not points:
        return
    x, y = ([getattr(point, axis).value for point in points] for axis in "xy")
    reaches: dict[str, Any] = {}
    for axis in "x" if series.band else "xy":
        ends = [getattr(point, axis) for point in points]
        if any(end.low < end.high for end in ends):
            low = [_reach(end.value - end.low) for end in ends]
            reaches[f"{axis}err"] = [low, [_reach(end.high - end.value) for end in ends]]
    if series.band:
        inside = [point for point in points if not isnan(point.y.low)]
        ax.fill_between(
            [point.x.value for point in inside],
            [point.y.low for point in inside],
            [point.y.high for point in inside],
            color=series.colour,
            alpha=0.15,
            linewidth=0,
        )
    if reaches:
        whisker: dict[str, Any] = {
            "ecolor": series.colour,
            "elinewidth": 0.8,
            "alpha": 0.5,
            "zorder": 2,
        }
        ax.errorbar(x, y, fmt="none", **reaches, **whisker)
    ax.plot(x, y, **_strokes(series), zorder=3)


def _reach(size: float) -> float:
    return 0.0 if isnan(size) else max(size, 0.0)


def _strokes(series: Series) -> dict[str, Any]:
    """Line and marker, as arguments of matplotlib's `Line2D`."""
    size = 1.5 * series.size if series.marker == "*" else series.size
    plain = series.marker == "|"
    return {
        "color": series.colour,
        "linewidth": 0.9 if series.hollow else 1.2,
        "linestyle": DASHES[series.line],
        "marker": series.marker or "none",
        "markersize": size,
        "markerfacecolor": "white" if series.hollow else series.colour,
        "markeredgecolor": series.colour if series.hollow or plain else "white",
        "markeredgewidth": 0.9 if series.hollow or plain else 0.4,
    }


def _scale(ax: Axes, name: str, axis: Axis) -> None:
    own = ax.xaxis if name == "x" else ax.yaxis
    limits = ax.set_xlim if name == "x" else ax.set_ylim
    if axis.log:
        (ax.set_xscale if name == "x" else ax.set_yscale)("log")
        own.set_major_formatter(StrMethodFormatter("{x:g}"))
        own.set_minor_locator(NullLocator())
    if axis.ticks is not None:
        own.set_minor_locator(NullLocator())
        own.set_ticks([value for value, _ in axis.ticks], [text for _, text in axis.ticks])
    elif axis.percent:
        own.set_major_formatter(PercentFormatter(1.0, decimals=0))
    low, high = (ax.get_xlim if name == "x" else ax.get_ylim)()
    ends = (low if axis.low is None else axis.low, high if axis.high is None else axis.high)
    limits(ends if axis.rises else ends[::-1])
    own.set_label_text(axis.label)


def _legend(plot: Plot) -> list[Line2D | Patch]:
    """One legend entry for each name, of series with their longest line and of references."""
    longest: dict[str, Series] = {}
    lines: dict[str, Reference] = {}
    for panel in plot.panels:
        for series in panel.series:
            known = longest.get(series.name)
            if series.name and (known is None or len(series.points) > len(known.points)):
                longest[series.name] = series
        lines |= {one.label: one for one in panel.references if one.label}
    handles: list[Line2D | Patch] = [
        Line2D([], [], label=name, **_strokes(series)) for name, series in longest.items()
    ]
    for label, one in lines.items():
        if one.to is None:
            kind: dict[str, Any] = {"linewidth": 0.8, "linestyle": DASHES[one.line]}
            handles.append(Line2D([], [], color=GREY, label=label, **kind))
        else:
            handles.append(Patch(color=GREY, alpha=0.15, linewidth=0, label=label))
    return handles


def _per_row(handles: Sequence[Line2D | Patch], width: float) -> int:
    """Number of legend entries that fit into a row."""
    longest = max((len(str(handle.get_label())) for handle in handles), default=0)
    return max(1, min(len(handles), int(width / (0.55 + 0.052 * longest))))


def _label_points(ax: Axes, panel: Panel) -> None:
    labels = [
        Label(point.x.value, point.y.value, point.label, series.colour)
        for series in panel.series
        for point in series.points
        if point.label and not (point.x.is_missing or point.y.is_missing)
    ]
    if not labels:
        return
    corners = [(series, _corners(series)) for series in panel.series]
    markers = np.concatenate([found for _, found in corners])
    traces = [found for series, found in corners if series.line and len(found)]
    for reference in panel.references:
        ends = ax.get_xlim() if reference.axis == "y" else ax.get_ylim()
        across = np.array([[end, reference.value] for end in ends])
        traces.append(across if reference.axis == "y" else across[:, ::-1])
    place_labels(ax, labels, markers, traces, SMALL)


def _corners(series: Series) -> Floats:
    shown = [
        (p.x.value, p.y.value) for p in series.points if not (p.x.is_missing or p.y.is_missing)
    ]
    return np.reshape(np.array(shown, float), (-1, 2))
