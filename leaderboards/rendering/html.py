"""Tables and plots as HTML, by the templates of this folder: they need no script, and take the colours of the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan, log10

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.ticker import LogLocator, MaxNLocator

from leakboard.leaderboards.rendering.plot import Axis, Panel, Plot
from leakboard.leaderboards.rendering.table import Table

WIDTH, HEIGHT = 460, 320
"""Units of the view box of a panel; on a page a unit is about a pixel."""
LEFT, RIGHT, TOP, BOTTOM = 56, 14, 10, 44


def templates(package: str) -> Environment:
    """The templates of a package: all text in them is escaped, and a missing variable is an error."""
    made = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.tests["nan"] = isnan
    return made


TEMPLATES = templates("leakboard.leaderboards.rendering")


def html_table(table: Table) -> Markup:
    """The table with caption, scopes of headings, bars and notes."""
    return Markup(TEMPLATES.get_template("table.html").render(table=table))


def svg_plot(plot: Plot) -> Markup:
    """The plot as a picture in SVG for each panel, with its legend and caption."""
    series = [one for panel in plot.panels for one in panel.series]
    legend = {one.name: one for one in series if one.name and one.measured}
    panels = [(panel, *_scales(panel)) for panel in plot.panels]
    shown = {"plot": plot, "panels": panels, "legend": legend.values()}
    template = TEMPLATES.get_template("plot.html")
    return Markup(template.render(shown, width=WIDTH, height=HEIGHT))


class _Scale:
    """Map from values of an axis to units of the picture, with ticks."""

    def __init__(self, axis: Axis, values: Sequence[float], start: float, stop: float) -> None:
        self.axis, self.start, self.stop = axis, start, stop
        self.transform: Callable[[float], float] = log10 if axis.log else float
        known = [v for v in values if not isnan(v) and not (axis.log and v <= 0)] or [0.1, 1.0]
        low = min(known) if axis.low is None else axis.low
        high = max(known) if axis.high is None else axis.high
        if high <= low:
            low, high = (low / 2, low * 2) if axis.log else (low - 0.5, low + 0.5)
        elif not axis.log:
            low -= 0.04 * (high - low) if axis.low is None else 0
            high += 0.04 * (high - low) if axis.high is None else 0
        self.low, self.high = self.transform(low), self.transform(high)

    def __call__(self, value: float) -> float:
        share = (self.transform(value) - self.low) / (self.high - self.low)
        share = min(max(share if self.axis.rises else 1 - share, 0.0), 1.0)
        return round(self.start + share * (self.stop - self.start), 1)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        given = self._own_ticks() if self.axis.ticks is None else self.axis.ticks
        margin = 1e-9 * (self.high - self.low)
        return [
            (value, text)
            for value, text in given
            if self.low - margin <= self.transform(value) <= self.high + margin
        ]

    def _own_ticks(self) -> list[tuple[float, str]]:
        """Powers of ten, or about five multiples of 1, 2 or 5 times a power of ten."""
        if self.axis.log:
            return [(x, f"{x:g}") for x in LogLocator().tick_values(10**self.low, 10**self.high)]
        values = MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(self.low, self.high)
        return [(v, f"{100 * v:.0f} %" if self.axis.percent else f"{v:z.6g}") for v in values]


def _scales(panel: Panel) -> tuple[_Scale, _Scale]:
    points = [point for series in panel.series for point in series.points]
    xs = [point.x.value for point in points]
    xs += [reference.value for reference in panel.references if reference.axis == "x"]
    ys = [end for point in points for end in point.y.ends]
    return (
        _Scale(panel.x, xs, LEFT, WIDTH - RIGHT),
        _Scale(panel.y, ys, HEIGHT - BOTTOM, TOP),
    )
