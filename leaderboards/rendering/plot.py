"""Description of a plot, for files and for pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from leakboard.bench.contracts import grouped
from leakboard.leaderboards.tables import Interval

GREY = "#6b6b6b"
CLASSES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
"""Colours of classes, after Okabe and Ito; defenses have their own colours."""
Line = Literal["", "solid", "dashed", "dotted", "dashdot"]
MOST_NAMES = 8
"""Largest number of names in a legend."""
PALE = "#d4d4d4"
"""Colour of series of other parts of a split plot."""
LINES: tuple[Line, ...] = ("solid", "dashdot", "dotted", "dashed")
"""Line styles of variants of one defense, in order."""


@dataclass(frozen=True)
class Point:
    """A point with the intervals of both numbers; NaN ends are not drawn.

    Attributes:
        label: label next to the point, if there is room.
        detail: text that pages show on hover; by default label and numbers.
        url: link of the point on pages.
    """

    x: Interval
    y: Interval
    label: str = ""
    detail: str = ""
    url: str = ""

    @classmethod
    def of(
        cls, x: Interval | float, y: Interval | float, label: str = "", detail: str = ""
    ) -> Point:
        """A point of which numbers without an interval are known without error."""
        a, b = (n if isinstance(n, Interval) else Interval(n, n, n) for n in (x, y))
        return cls(a, b, label, detail)


@dataclass(frozen=True)
class Series:
    """Points with one style.

    Attributes:
        name: name in the legend, which has it once for all panels; '' for none.
        line: style of the line that connects the points; '' for none.
        marker: marker of matplotlib; '' for none.
        hollow: True for numbers of papers.
        band: draw the intervals of y as a band instead of whiskers.
        group: series that stay together where a file splits a panel, such as those of one defense.
    """

    name: str
    points: Sequence[Point]
    colour: str
    marker: str = "o"
    line: Line = ""
    hollow: bool = False
    band: bool = False
    size: float = 5.0
    group: str = ""

    @property
    def measured(self) -> list[Point]:
        """Points of which both numbers are known."""
        return [one for one in self.points if not (one.x.is_missing or one.y.is_missing)]


@dataclass(frozen=True)
class Reference:
    """A line across a panel; named in the legend."""

    axis: Literal["x", "y"]
    value: float
    label: str = ""
    line: Line = "dotted"


@dataclass(frozen=True)
class Axis:
    """An axis.

    Attributes:
        low, high: limits; by default from the points.
        ticks: values with their labels, such as names of settings.
        percent: write shares from 0 to 1 as percentages.
        rises: False if the largest value is at the origin.
        shared: label the ticks only in the first panel of a row.
    """

    label: str = ""
    low: float | None = None
    high: float | None = None
    ticks: Sequence[tuple[float, str]] | None = None
    log: bool = False
    percent: bool = False
    rises: bool = True
    shared: bool = False


@dataclass(frozen=True)
class Panel:
    """Axes with their content.

    Attributes:
        remark: short text in a corner.
        height: height in a file in inches.
        weight: width relative to other panels of the row.
    """

    title: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    references: Sequence[Reference] = field(default=())
    remark: str = ""
    height: float = 2.6
    weight: float = 1.0


@dataclass(frozen=True)
class Plot:
    """Panels in rows with a title, one legend and a caption.

    Attributes:
        columns: largest number of panels in a row.
    """

    title: str
    panels: Sequence[Panel]
    caption: str = ""
    columns: int = 2

    @property
    def rows(self) -> list[Sequence[Panel]]:
        return [self.panels[n : n + self.columns] for n in range(0, len(self.panels), self.columns)]


def split_plot(plot: Plot) -> list[Plot]:
    """Parts with at most `MOST_NAMES` names in their legends; a plot with few names is its own only part.

    A part has all rows of panels in which some of its series are. It names the series of some groups; those without a
    group are in all parts, and those of other groups are pale and have no name.
    """
    series = [one for panel in plot.panels for one in panel.series if one.name and one.measured]
    names = dict.fromkeys((one.group, one.name) for one in series)
    common = {name for group, name in names if not group}
    common |= {one.label for panel in plot.panels for one in panel.references if one.label}
    if len(common) + sum(bool(group) for group, _ in names) <= MOST_NAMES:
        return [plot]
    room = max(1, MOST_NAMES - len(common))
    chunks: list[list[tuple[str, str]]] = []
    for own in grouped((name for name in names if name[0]), lambda name: name[0]).values():
        if chunks and len(chunks[-1]) + len(own) <= room:
            chunks[-1] += own
        else:
            chunks += [own[n : n + room] for n in range(0, len(own), room)]
    return [_part(plot, set(chunk)) for chunk in chunks]


def _part(plot: Plot, names: set[tuple[str, str]]) -> Plot:
    def pale(series: Series) -> Series:
        points = [Point.of(one.x.value, one.y.value) for one in series.points]
        return replace(series, name="", points=points, colour=PALE, band=False)

    def is_in(series: Series) -> bool:
        return (series.group, series.name) in names

    panels = []
    for row in plot.rows:
        if not any(is_in(one) for panel in row for one in panel.series):
            continue
        for panel in row:
            others = [pale(one) for one in panel.series if one.group and not is_in(one)]
            named = [one for one in panel.series if not one.group or is_in(one)]
            panels.append(replace(panel, series=[*others, *named]))
    return replace(plot, panels=panels)
