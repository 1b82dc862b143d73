"""Plots as SVG inside a page: they need no script, and take the colours of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import floor, isnan, log10

from markupsafe import Markup

from leakboard.leaderboards.rendering.plot import Axis, Panel, Plot, Point, Reference, Series

WIDTH, HEIGHT = 460, 320
"""Units of the view box; on a page a unit is about a pixel."""
LEFT, RIGHT, TOP, BOTTOM = 56, 14, 10, 44
DASHES = {"solid": "", "dashed": "6 3", "dotted": "2 3", "dashdot": "6 3 2 3"}
SHAPES = {
    "o": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "s": "M-3.6-3.6h7.2v7.2h-7.2z",
    "D": "M0-4.8L4.8 0L0 4.8L-4.8 0z",
    "d": "M0-5L3 0L0 5L-3 0z",
    "^": "M0-4.6L4.6 3.8H-4.6z",
    "v": "M0 4.6L4.6-3.8H-4.6z",
    "<": "M-4.6 0L3.8-4.6V4.6z",
    ">": "M4.6 0L-3.8-4.6V4.6z",
    "P": "M-1.6-4.5h3.2v2.9h2.9v3.2h-2.9v2.9h-3.2v-2.9h-2.9v-3.2h2.9z",
    "X": "M-4-2L-2-4L0-2L2-4L4-2L2 0L4 2L2 4L0 2L-2 4L-4 2L-2 0z",
    "*": "M0-5L1.3-1.7L4.8-1.6L2 .7L3 4.2L0 2.2L-3 4.2L-2 .7L-4.8-1.6L-1.3-1.7z",
    "p": "M0-4.6L4.4-1.4L2.7 3.7H-2.7L-4.4-1.4z",
    "h": "M0-4.7L4.1-2.3V2.3L0 4.7L-4.1 2.3V-2.3z",
}
PLOT_CSS = """\
.plot svg { width: 100%; max-width: 38rem; height: auto; display: block; }
.plot text { font-size: 11.5px; fill: currentColor; }
.plot .tick { opacity: .7; }
.plot .grid { stroke: currentColor; opacity: .12; }
.plot .reference { stroke: currentColor; opacity: .55; stroke-width: 1; }
.plot .range { fill: currentColor; opacity: .07; }
.plot g { --ink: light-dark(var(--c), color-mix(in srgb, var(--c), white 50%)); }
.plot .mark { fill: var(--ink); }
.plot .hollow .mark { fill: none; stroke: var(--ink); stroke-width: 1.4; }
.plot .line { fill: none; stroke: var(--ink); stroke-width: 1.6; }
.plot .whisker { stroke: var(--ink); stroke-width: 1; opacity: .7; }
.plot .band { fill: var(--ink); opacity: .15; }
.plot ul { display: flex; flex-wrap: wrap; gap: .1rem 1rem; list-style: none; margin: .2rem 0 0; padding: 0; font-size: .8rem; }
.plot li svg { display: inline-block; width: .85em; height: .85em; overflow: visible; vertical-align: -.06em; }
"""
"""Style of plots; a page includes it once."""


def svg_plot(plot: Plot) -> Markup:
    """The plot with its legend and caption; all text in it is escaped."""
    panels = Markup("").join(_panel(panel, plot.title) for panel in plot.panels)
    keys = {
        series.name: _key(series)
        for panel in plot.panels
        for series in panel.series
        if series.name and series.measured
    }
    legend = Markup("<ul>{}</ul>\n").format(Markup("").join(keys.values())) if keys else ""
    caption = Markup("<figcaption>{}</figcaption>\n").format(plot.caption) if plot.caption else ""
    return Markup('<figure class="plot">\n{}{}{}</figure>\n').format(panels, legend, caption)


def _panel(panel: Panel, title: str) -> Markup:
    points = [point for series in panel.series for point in series.points]
    across = [reference.value for reference in panel.references if reference.axis == "x"]
    x = _scale(panel.x, [*(p.x.value for p in points), *across], LEFT, WIDTH - RIGHT)
    ends = [end for p in points for end in p.y.ends]
    y = _scale(panel.y, ends, HEIGHT - BOTTOM, TOP)
    words = f"{title}: {panel.title}" if panel.title else title
    notes = [(LEFT + 6, TOP + 12, panel.title), (LEFT + 6, HEIGHT - BOTTOM - 6, panel.remark)]
    parts = [*_axes(panel, x, y), *(_reference(one, x, y) for one in panel.references)]
    parts += [_series(series, x, y) for series in panel.series]
    parts += [Markup('<text x="{}" y="{}">{}</text>').format(*one) for one in notes if one[2]]
    return Markup('<svg viewBox="0 0 {} {}" role="group" aria-label="{}">\n{}</svg>\n').format(
        WIDTH, HEIGHT, words, Markup("").join(parts)
    )


class _Scale:
    """Map from values of an axis to units of the picture, with ticks."""

    def __init__(self, axis: Axis, low: float, high: float, start: float, stop: float) -> None:
        self.axis, self.start, self.stop = axis, start, stop
        self.transform: Callable[[float], float] = log10 if axis.log else float
        self.low, self.high = self.transform(low), self.transform(high)

    def __call__(self, value: float) -> float:
        share = (self.transform(value) - self.low) / (self.high - self.low)
        share = min(max(share if self.axis.rises else 1 - share, 0.0), 1.0)
        return round(self.start + share * (self.stop - self.start), 1)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        if self.axis.ticks is not None:
            ticks = list(self.axis.ticks)
        elif self.axis.log:
            ticks = [
                (10.0**n, f"{10.0**n:g}") for n in range(floor(self.low), floor(self.high) + 1)
            ]
        else:
            step = _step(self.high - self.low)
            first = floor(self.low / step)
            values = [step * n for n in range(first, first + 12)]
            ticks = [(v, f"{100 * v:.0f} %" if self.axis.percent else f"{v:z.6g}") for v in values]
        margin = 1e-9 * (self.high - self.low)
        return [
            (value, text)
            for value, text in ticks
            if self.low - margin <= self.transform(value) <= self.high + margin
        ]


def _scale(axis: Axis, values: Sequence[float], start: float, stop: float) -> _Scale:
    known = [v for v in values if not isnan(v) and not (axis.log and v <= 0)] or [0.1, 1.0]
    low = min(known) if axis.low is None else axis.low
    high = max(known) if axis.high is None else axis.high
    if high <= low:
        low, high = (low / 2, low * 2) if axis.log else (low - 0.5, low + 0.5)
    elif not axis.log:
        low -= 0.04 * (high - low) if axis.low is None else 0
        high += 0.04 * (high - low) if axis.high is None else 0
    return _Scale(axis, low, high, start, stop)


def _step(span: float) -> float:
    """1, 2 or 5 times a power of ten, for about five ticks."""
    power = 10.0 ** floor(log10(span / 4))
    return next(n * power for n in (1, 2, 5, 10) if span / (n * power) <= 5.5)


def _axes(panel: Panel, x: _Scale, y: _Scale) -> Iterator[Markup]:
    right, foot = WIDTH - RIGHT, HEIGHT - BOTTOM
    for value, text in y.ticks:
        yield Markup(
            '<path class="grid" d="M{} {}H{}"/><text class="tick" x="{}" y="{}" text-anchor="end">{}</text>'
        ).format(LEFT, y(value), right, LEFT - 6, y(value) + 4, text)
    for value, text in x.ticks:
        yield Markup(
            '<path class="grid" d="M{} {}V{}"/><text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>'
        ).format(x(value), TOP, foot, x(value), foot + 16, text)
    yield Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>').format(
        (LEFT + right) / 2, HEIGHT - 8, panel.x.label
    )
    yield Markup(
        '<text transform="translate(12 {}) rotate(-90)" text-anchor="middle">{}</text>\n'
    ).format((TOP + foot) / 2, panel.y.label)


def _reference(one: Reference, x: _Scale, y: _Scale) -> Markup:
    scale = x if one.axis == "x" else y
    place, foot, right = scale(one.value), HEIGHT - BOTTOM, WIDTH - RIGHT
    if one.to is not None:
        low, high = sorted((place, scale(one.to)))
        box = (
            (low, TOP, high - low, foot - TOP)
            if one.axis == "x"
            else (LEFT, low, right - LEFT, high - low)
        )
        return Markup('<rect class="range" x="{}" y="{}" width="{}" height="{}"/>\n').format(*box)
    path = f"M{place} {TOP}V{foot}" if one.axis == "x" else f"M{LEFT} {place}H{right}"
    at = (place + 4, foot - 6) if one.axis == "x" else (right - 4, place - 4)
    label = (
        Markup('<text class="tick" x="{}" y="{}" text-anchor="{}">{}</text>').format(
            *at, "start" if one.axis == "x" else "end", one.label
        )
        if one.label
        else ""
    )
    return Markup('<path class="reference" stroke-dasharray="{}" d="{}"/>{}\n').format(
        DASHES[one.line or "solid"], path, label
    )


def _series(series: Series, x: _Scale, y: _Scale) -> Markup:
    points = series.measured
    parts: list[Markup] = []
    if series.band:
        inside = [p for p in points if not isnan(p.y.low)]
        corners = [(p.x.value, p.y.high) for p in inside]
        corners += [(p.x.value, p.y.low) for p in reversed(inside)]
        path = "L".join(f"{x(a)} {y(b)}" for a, b in corners)
        parts += [Markup('<path class="band" d="M{}z"/>').format(path)] if corners else []
    if series.line and len(points) > 1:
        path = "L".join(f"{x(p.x.value)} {y(p.y.value)}" for p in points)
        parts.append(
            Markup('<path class="line" stroke-dasharray="{}" d="M{}"/>').format(
                DASHES[series.line], path
            )
        )
    for point in points:
        parts += [*_whiskers(series, point, x, y), _mark(series, point, x, y)]
    return Markup('<g{} style="--c: {}">{}</g>\n').format(
        Markup(' class="hollow"') if series.hollow else "", series.colour, Markup("").join(parts)
    )


def _whiskers(series: Series, point: Point, x: _Scale, y: _Scale) -> Iterator[Markup]:
    across, up = x(point.x.value), y(point.y.value)
    if not isnan(point.x.low) and point.x.low < point.x.high:
        yield Markup('<path class="whisker" d="M{} {}H{}"/>').format(
            x(point.x.low), up, x(point.x.high)
        )
    if not series.band and not isnan(point.y.low) and point.y.low < point.y.high:
        yield Markup('<path class="whisker" d="M{} {}V{}"/>').format(
            across, y(point.y.low), y(point.y.high)
        )


def _mark(series: Series, point: Point, x: _Scale, y: _Scale) -> Markup:
    if not series.marker:
        return Markup("")
    words = (
        point.detail or f"{point.label or series.name}: {point.x.value:.3g}, {point.y.value:.3g}"
    )
    mark = Markup(
        '<path class="mark" transform="translate({} {})" d="{}"><title>{}</title></path>'
    ).format(x(point.x.value), y(point.y.value), SHAPES.get(series.marker, SHAPES["o"]), words)
    return Markup('<a href="{}">{}</a>').format(point.url, mark) if point.url else mark


def _key(series: Series) -> Markup:
    """An entry of the legend."""
    return Markup(
        '<li><svg viewBox="-6 -6 12 12" aria-hidden="true"><g{} style="--c: {}"><path class="mark" d="{}"/></g></svg> {}</li>'
    ).format(
        Markup(' class="hollow"') if series.hollow else "",
        series.colour,
        SHAPES.get(series.marker, SHAPES["o"]),
        series.name,
    )
