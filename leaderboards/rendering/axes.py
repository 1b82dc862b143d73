"""Panels on axes of matplotlib: series with intervals, references, scales, and names of points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator, PercentFormatter, StrMethodFormatter

from leakboard.bench.contracts import grouped
from leakboard.leaderboards.rendering.plot import GREY, Axis, Panel, Series

SMALL = 6.5
"""Font size of the smallest text in points."""
DASHES: dict[str, Any] = {
    "solid": "-",
    "dashed": (0, (4, 2.5)),
    "dotted": (0, (1, 1.5)),
    "dashdot": (0, (6, 1.5, 1, 1.5)),
    "": "none",
}


def draw_panel(ax: Axes, panel: Panel) -> None:
    """Draws everything but the names of points, which need the final layout."""
    ax.set_title(panel.title)
    for reference in panel.references:
        line = ax.axvline if reference.axis == "x" else ax.axhline
        dashes = DASHES[reference.line]
        line(reference.value, linewidth=0.8, linestyle=dashes, color=GREY, zorder=1)
    for series in panel.series:
        _series(ax, series)
    _scale(ax, "x", panel.x)
    _scale(ax, "y", panel.y)
    if panel.remark:
        ax.text(0.01, 0.01, panel.remark, color=GREY, fontsize=SMALL, transform=ax.transAxes)


def _series(ax: Axes, series: Series) -> None:
    points = series.measured
    if not points:
        return
    x, y = (np.array([getattr(point, axis).ends for point in points]).T for axis in "xy")
    reaches = {
        f"{axis}err": np.nan_to_num([ends[0] - ends[1], ends[2] - ends[0]]).clip(0)
        for axis, ends in (("x", x), ("y", y))
        if (ends[1] < ends[2]).any() and not (axis == "y" and series.band)
    }
    if series.band:
        known = ~np.isnan(y[1])
        ax.fill_between(
            x[0][known], y[1][known], y[2][known], color=series.colour, alpha=0.15, linewidth=0
        )
    if reaches:
        ax.errorbar(
            x[0],
            y[0],
            fmt="none",
            ecolor=series.colour,
            elinewidth=0.8,
            alpha=0.5,
            zorder=2,
            **reaches,
        )
    ax.plot(x[0], y[0], **_strokes(series), zorder=3)


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
    if axis.log:
        ax.set(**{f"{name}scale": "log"})
        own.set_major_formatter(StrMethodFormatter("{x:g}"))
    if axis.log or axis.ticks is not None:
        own.set_minor_locator(NullLocator())
    if axis.ticks is not None:
        own.set_ticks([value for value, _ in axis.ticks], [text for _, text in axis.ticks])
    elif axis.percent:
        own.set_major_formatter(PercentFormatter(1.0, decimals=0))
    low, high = own.get_view_interval()
    ends = (low if axis.low is None else axis.low, high if axis.high is None else axis.high)
    ax.set(**{f"{name}lim": ends if axis.rises else ends[::-1], f"{name}label": axis.label})


def legend_entries(panels: Sequence[Panel]) -> list[Line2D]:
    """One legend entry for each name, of series with their longest line and of references."""
    named = [one for panel in panels for one in panel.series if one.name and one.measured]
    handles = [
        Line2D([], [], label=name, **_strokes(max(own, key=lambda one: len(one.points))))
        for name, own in grouped(named, lambda one: one.name).items()
    ]
    lines = {one.label: one for panel in panels for one in panel.references if one.label}
    handles += [
        Line2D([], [], color=GREY, label=label, linewidth=0.8, linestyle=DASHES[one.line])
        for label, one in lines.items()
    ]
    return handles
