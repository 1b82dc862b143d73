"""Plots for pages, as figures of plotly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isnan, log10
from typing import Any

from markupsafe import Markup

from leakboard.leaderboards.rendering.plot import GREY, Axis, Panel, Plot, Point, Reference, Series

SYMBOLS = {
    "o": "circle",
    "s": "square",
    "D": "diamond",
    "^": "triangle-up",
    "v": "triangle-down",
    "<": "triangle-left",
    ">": "triangle-right",
    "P": "cross",
    "*": "star",
    "|": "line-ns-open",
}
DASHES = {"solid": "solid", "dashed": "dash", "dotted": "dot", "dashdot": "dashdot"}
ROW = 340
"""Pixels of a row of panels 2.6 inches high."""
GAP = 0.09
"""Of the width, between panels."""
PLOT_SCRIPT = """\
for (const place of document.querySelectorAll("div.plot")) {
  const figure = JSON.parse(place.nextElementSibling.textContent);
  Plotly.newPlot(place, figure.data, figure.layout, {responsive: true, displaylogo: false});
  place.on("plotly_click", (event) => {
    const url = event.points[0].customdata;
    if (url) window.location.href = url;
  });
}
"""
"""Draws every fragment of a page; a page includes it once, behind plotly.js."""


def plotly_figure(plot: Plot) -> dict[str, Any]:
    """The plot as plotly's `data` and `layout`, ready for JSON."""
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {
        "height": round(sum(ROW * max(p.height for p in row) / 2.6 for row in plot.rows) + 90),
        "margin": {"l": 60, "r": 20, "t": 40, "b": 60},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hovermode": "closest",
        "legend": {"orientation": "h", "y": -0.15, "yanchor": "top"},
        "shapes": [],
        "annotations": [],
    }
    named: set[str] = set()
    for n, (panel, x, y) in enumerate(_domains(plot), start=1):
        number = "" if n == 1 else str(n)
        layout[f"xaxis{number}"] = _axis(panel.x) | {"domain": x, "anchor": f"y{number}"}
        layout[f"yaxis{number}"] = _axis(panel.y) | {"domain": y, "anchor": f"x{number}"}
        at = {"xref": "paper", "yref": "paper", "showarrow": False, "xanchor": "left"}
        layout["annotations"].append(
            at
            | {"text": f"<b>{_plain(panel.title)}</b>", "x": x[0], "y": y[1], "yanchor": "bottom"}
        )
        if panel.remark:
            small = {"size": 11, "color": GREY}
            layout["annotations"].append(
                at
                | {
                    "text": _plain(panel.remark),
                    "x": x[0],
                    "y": y[0],
                    "yanchor": "bottom",
                    "font": small,
                }
            )
        for reference in panel.references:
            layout["shapes"].append(_shape(reference, number))
            if reference.label and reference.label not in named:
                named.add(reference.label)
                data.append(_key(reference, number))
        for series in panel.series:
            first = bool(series.name) and series.name not in named
            named.add(series.name)
            data += _traces(series, number, first, panel)
    return {"data": data, "layout": layout}


def plotly_fragment(plot: Plot) -> Markup:
    """The figure for a page that has plotly.js and `PLOT_SCRIPT`."""
    text = json.dumps(plotly_figure(plot), separators=(",", ":"), allow_nan=False)
    caption = Markup("<figcaption>{}</figcaption>\n").format(plot.caption) if plot.caption else ""
    return Markup(
        '<figure>\n<div class="plot" role="img" aria-label="{}"></div>\n'
        '<script type="application/json">{}</script>\n{}</figure>\n'
    ).format(plot.title, Markup(text.replace("<", "\\u003c")), caption)


def _domains(plot: Plot) -> Iterator[tuple[Panel, list[float], list[float]]]:
    """Each panel with its place, from 0 to 1."""
    heights = [max(panel.height for panel in row) for row in plot.rows]
    gap = 0.16 / len(heights) if len(heights) > 1 else 0.0
    room, top = 1 - gap * (len(heights) - 1), 1.0
    for row, height in zip(plot.rows, heights, strict=True):
        deep = room * height / sum(heights)
        total = sum(panel.weight for panel in row)
        total += plot.rows[0][0].weight * (len(plot.rows[0]) - len(row))
        left = 0.0
        for panel in row:
            wide = (1 - GAP * (len(plot.rows[0]) - 1)) * panel.weight / total
            yield (
                panel,
                [round(left, 4), round(left + wide, 4)],
                [round(top - deep, 4), round(top, 4)],
            )
            left += wide + GAP
        top -= deep + gap


def _axis(axis: Axis) -> dict[str, Any]:
    found: dict[str, Any] = {
        "title": {"text": _plain(axis.label).replace("\n", "<br>")},
        "automargin": True,
        "gridcolor": "rgba(128,128,128,0.2)",
        "zeroline": False,
    }
    if axis.percent:
        found["tickformat"] = ".0%"
    if axis.log:
        found["type"] = "log"
    if axis.ticks is not None:
        found["tickvals"] = [value for value, _ in axis.ticks]
        found["ticktext"] = [_plain(text).replace("\n", "<br>") for _, text in axis.ticks]
    ends = [axis.low, axis.high]
    if any(end is not None for end in ends):
        found["range"] = [log10(end) if end and axis.log else end for end in ends]
        if not axis.rises:
            found["range"].reverse()
    elif not axis.rises:
        found["autorange"] = "reversed"
    return found


def _traces(series: Series, number: str, first: bool, panel: Panel) -> Iterator[dict[str, Any]]:
    points = [point for point in series.points if not (point.x.is_missing or point.y.is_missing)]
    at = {"xaxis": f"x{number}", "yaxis": f"y{number}", "legendgroup": series.name}
    if series.band:
        inside = [point for point in points if not isnan(point.y.low)]
        around = [(p.x.value, p.y.high) for p in inside]
        around += [(p.x.value, p.y.low) for p in reversed(inside)]
        yield at | {
            "type": "scatter",
            "x": [x for x, _ in around],
            "y": [y for _, y in around],
            "fill": "toself",
            "fillcolor": series.colour,
            "opacity": 0.15,
            "line": {"width": 0},
            "hoverinfo": "skip",
            "showlegend": False,
        }
    mode = "+".join(["lines"] * bool(series.line) + ["markers"] * bool(series.marker)) or "none"
    trace: dict[str, Any] = at | {
        "type": "scatter",
        "mode": mode,
        "name": _plain(series.name),
        "showlegend": first,
        "x": [point.x.value for point in points],
        "y": [point.y.value for point in points],
        "text": [_hover(point, panel) for point in points],
        "hoverinfo": "text",
        "customdata": [point.url for point in points],
    }
    if series.marker:
        symbol = SYMBOLS.get(series.marker, "circle")
        if series.hollow and not symbol.endswith("-open"):
            symbol += "-open"
        trace["marker"] = {"symbol": symbol, "size": 1.8 * series.size, "color": series.colour}
    if series.line:
        trace["line"] = {"dash": DASHES[series.line], "color": series.colour, "width": 1.5}
    for axis in ("x",) if series.band else ("x", "y"):
        ends = [getattr(point, axis) for point in points]
        if any(not isnan(end.low) and end.low < end.high for end in ends):
            trace[f"error_{axis}"] = {
                "type": "data",
                "symmetric": False,
                "array": [_reach(end.high - end.value) for end in ends],
                "arrayminus": [_reach(end.value - end.low) for end in ends],
                "thickness": 1,
                "width": 0,
                "color": series.colour,
            }
    yield trace


def _reach(size: float) -> float:
    return 0.0 if isnan(size) else max(size, 0.0)


def _hover(point: Point, panel: Panel) -> str:
    if point.detail:
        return _plain(point.detail).replace("\n", "<br>")
    shown = [point.label] if point.label else []
    for axis, value in ((panel.x, point.x.value), (panel.y, point.y.value)):
        if axis.ticks is None:
            number = f"{value:.0%}" if axis.percent else f"{value:.4g}"
            shown.append(f"{axis.label.splitlines()[0] if axis.label else ''} {number}".strip())
    return "<br>".join(map(_plain, shown))


def _shape(reference: Reference, number: str) -> dict[str, Any]:
    own, other = reference.axis, "y" if reference.axis == "x" else "x"
    to = reference.value if reference.to is None else reference.to
    shape: dict[str, Any] = {
        "layer": "below",
        f"{own}ref": f"{own}{number}",
        f"{own}0": reference.value,
        f"{own}1": to,
        f"{other}ref": f"{other}{number} domain",
        f"{other}0": 0,
        f"{other}1": 1,
    }
    if reference.to is None:
        line = {"color": GREY, "width": 1, "dash": DASHES[reference.line or "solid"]}
        return shape | {"type": "line", "line": line}
    return shape | {"type": "rect", "fillcolor": GREY, "opacity": 0.1, "line": {"width": 0}}


def _key(reference: Reference, number: str) -> dict[str, Any]:
    """An entry of the legend."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": _plain(reference.label),
        "x": [None],
        "y": [None],
        "xaxis": f"x{number}",
        "yaxis": f"y{number}",
        "line": {"color": GREY, "width": 1, "dash": DASHES[reference.line or "solid"]},
    }


def _plain(text: str) -> str:
    """Without markup: plotly reads tags in every text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
