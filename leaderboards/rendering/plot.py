"""A plot described once, for files and for pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from leakboard.leaderboards.tables import Interval

GREY = "#6b6b6b"
CLASSES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
"""Colours of what has no defense to give it one; after Okabe and Ito. Those of defenses: `look`."""
Line = Literal["", "solid", "dashed", "dotted", "dashdot"]
LINES: tuple[Line, ...] = ("solid", "dashdot", "dotted", "dashed")
"""For variants of one defense, in this order."""


def exact(value: float) -> Interval:
    """A number that is known without error."""
    return Interval(value, value, value)


@dataclass(frozen=True)
class Point:
    """A point with the intervals of both numbers; NaN ends are not drawn.

    Attributes:
        label: stands beside it where there is room.
        detail: what a page shows where the pointer rests; without it label and numbers.
        url: where a page leads from it.
    """

    x: Interval
    y: Interval
    label: str = ""
    detail: str = ""
    url: str = ""


@dataclass(frozen=True)
class Series:
    """Points that are drawn alike.

    Attributes:
        name: in the legend, once for all panels; '' for none.
        line: connects the points in their order; '' for none.
        marker: one of matplotlib's; '' for none.
        hollow: for numbers that were not measured here.
        band: the intervals of y as a band, instead of a whisker at each point.
    """

    name: str
    points: Sequence[Point]
    colour: str
    marker: str = "o"
    line: Line = ""
    hollow: bool = False
    band: bool = False
    size: float = 5.0


@dataclass(frozen=True)
class Reference:
    """A line, or the range from `value` to `to`, across a panel; named in the legend."""

    axis: Literal["x", "y"]
    value: float
    label: str = ""
    to: float | None = None
    line: Line = "dotted"


@dataclass(frozen=True)
class Axis:
    """An axis.

    Attributes:
        low, high: its ends; as the points need where missing.
        ticks: values with their words, such as names of settings.
        percent: shares from 0 to 1 are written as percentages.
        rises: False where the largest value stands at the origin.
    """

    label: str = ""
    low: float | None = None
    high: float | None = None
    ticks: Sequence[tuple[float, str]] | None = None
    log: bool = False
    percent: bool = False
    rises: bool = True


@dataclass(frozen=True)
class Panel:
    """Axes with what is drawn in them.

    Attributes:
        remark: a few words in a corner.
        height: inches of the panel in a file.
        weight: its width, as a multiple of that of others beside it.
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
        columns: panels beside each other, at most.
    """

    title: str
    panels: Sequence[Panel]
    caption: str = ""
    columns: int = 2

    @property
    def rows(self) -> list[Sequence[Panel]]:
        return [self.panels[n : n + self.columns] for n in range(0, len(self.panels), self.columns)]
