"""Figures that a reader can ask for numbers: data for plotly."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape as escaped
from typing import Any

import numpy as np
import pandas as pd

from leakboard.bench.contracts import Record
from leakboard.leaderboards.figures import Curve, measured_curves
from leakboard.leaderboards.site.links import Links
from leakboard.leaderboards.site.record_tables import ONE_SEED
from leakboard.leaderboards.tables import (
    SETTING,
    Look,
    Row,
    distinct,
    look,
    pareto,
    rows_of,
    setting_of,
    told,
)

SIGNS = {
    "o": ("circle", "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z"),
    "s": ("square", "M-3.6-3.6h7.2v7.2h-7.2z"),
    "D": ("diamond", "M0-4.8L4.8 0L0 4.8L-4.8 0z"),
    "d": ("diamond-tall", "M0-5L3 0L0 5L-3 0z"),
    "^": ("triangle-up", "M0-4.6L4.6 3.8H-4.6z"),
    "v": ("triangle-down", "M0 4.6L4.6-3.8H-4.6z"),
    "<": ("triangle-left", "M-4.6 0L3.8-4.6V4.6z"),
    ">": ("triangle-right", "M4.6 0L-3.8-4.6V4.6z"),
    "P": ("cross", "M-1.6-4.5h3.2v2.9h2.9v3.2h-2.9v2.9h-3.2v-2.9h-2.9v-3.2h2.9z"),
    "X": ("x", "M-4-2L-2-4L0-2L2-4L4-2L2 0L4 2L2 4L0 2L-2 4L-4 2L-2 0z"),
    "*": ("star", "M0-5L1.3-1.7L4.8-1.6L2 .7L3 4.2L0 2.2L-3 4.2L-2 .7L-4.8-1.6L-1.3-1.7z"),
    "p": ("pentagon", "M0-4.6L4.4-1.4L2.7 3.7H-2.7L-4.4-1.4z"),
    "h": ("hexagon", "M0-4.7L4.1-2.3V2.3L0 4.7L-4.1 2.3V-2.3z"),
}
"""For each marker of matplotlib its name in plotly and its outline as an SVG path."""
DASHES = {"-": "solid"}
STROKES = {
    "solid": "",
    "dash": ", dashed",
    "dot": ", dotted",
    "dashdot": ", dash-dotted",
    "longdash": ", in long dashes",
}
"""Of lines of one colour, and how a legend tells them apart."""
CURVED = [*SETTING, "knob", "knob_value", "label"]
"""What tells points of one curve from others."""
HEIGHT = 340
"""Pixels."""
FAR = 8
"""Paddings below the lowest point within which the untuned model is drawn as a line."""


@dataclass(frozen=True)
class Chart:
    """A figure as `Plotly.newPlot` takes it; all text in it is escaped for plotly.

    Attributes:
        legend: of each trace the name as plain text, and its look if it stands for a method.
    """

    data: list[dict[str, Any]]
    layout: dict[str, Any]
    legend: list[tuple[str, Look | None]]


def outline(marker: str) -> str:
    """The SVG path of a marker."""
    return SIGNS.get(marker, SIGNS["o"])[1]


def label(text: Any) -> str:
    """Text for plotly, which reads a subset of HTML and knows no entity for quotes."""
    return escaped(str(text), quote=False)


def chart(points: pd.DataFrame, keys: Mapping[tuple[Any, ...], str], links: Links) -> Chart:
    """The figure of one task, goal and attribute.

    Args:
        points: as `leakboard.leaderboards.tables.points.points` builds them, all with both numbers.
        keys: for each setting the key of the record to which a click on its point leads.
        links: of the page on which it stands.
    """
    rows = dict(zip(points.index, rows_of(points), strict=True))
    best = pareto(points).sort_values(["ep", "utility"], ascending=[True, False])
    envelope = {
        "x": _plain(best["ep"]),
        "y": _plain(best["utility"]),
        "mode": "lines",
        # To the right of a point only the next one's utility is left.
        "line": {"shape": "vh", "width": 6},
        "opacity": 0.25,
        "hoverinfo": "skip",
        "meta": {"ink": "muted"},
    }
    where = {setting: links.record(key) for setting, key in keys.items()}
    curves = measured_curves(points[CURVED])  # of fifty columns each cut would be a copy
    low, high = float(points["ep_chance"].min()), float(points["ep_chance"].max())
    undefended = points.loc[points["defense"] == "none", "utility"]
    heights = points["utility"].to_numpy(float)
    pad = max(0.16 * float(np.ptp(heights)), 0.02)
    before = sorted(points["untuned"].dropna().unique().tolist())
    near = [level for level in before if level >= float(heights.min()) - FAR * pad]
    line = {"xref": "paper", "x0": 0, "x1": 1, "line": {"width": 1, "dash": "dash"}}
    dots = {**line, "line": {"width": 1, "dash": "dot"}}
    band = {"yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    return Chart(
        [
            envelope,
            *(_trace(curve, [rows[n] for n in curve.rows.index], where) for curve in curves),
        ],
        {
            "shapes": [
                {"type": "rect", "x0": low, "x1": high, **band, "line": {"width": 0}},
                {
                    "type": "line",
                    "x0": high,
                    "x1": high,
                    **band,
                    "line": {"width": 1, "dash": "dot"},
                },
                *({"type": "line", "y0": y, "y1": y, **line} for y in _plain(undefended)),
                *({"type": "line", "y0": y, "y1": y, **dots} for y in _plain(near)),
            ],
            "annotations": [_untuned(level, level in near) for level in before],
            "xaxis": {"title": {"text": "empirical privacy →"}, "range": [-0.04, 1.04]},
            "yaxis": {
                "title": {"text": f"{label(distinct(points['utility_metric']) or 'utility')} →"},
                "range": [min([float(heights.min()), *near]) - pad, float(heights.max()) + pad],
            },
            "height": HEIGHT,
        },
        [("Pareto envelope", None), *((curve.name, curve.look) for curve in curves)],
    )


def _untuned(level: float, near: bool) -> dict[str, Any]:
    """The name of the untuned model at its line, or at the foot where it is far below."""
    place = {"y": round(level, 5)} if near else {"yref": "paper", "y": 0}
    words = "untuned model" if near else f"untuned model: {level:.3f} ↓"
    left = {"xref": "paper", "x": 0, "xanchor": "left", "yanchor": "bottom"}
    return {**left, **place, "text": words, "showarrow": False, "font": {"size": 10}}


def over_steps(record: Record) -> Chart | None:
    """Success of the attacks over the steps of training, where a record has such curves."""
    leaks = [leak for leak in record.leaks if len(leak.curve) > 1]
    if not leaks:
        return None
    names = [f"{leak.attack.name} · {leak.channel} · {leak.metric}" for leak in leaks]
    seen = [leak.attack.name for leak in leaks]
    looks = [look(name) for name in seen]
    strokes = [list(STROKES)[seen[:at].count(name) % len(STROKES)] for at, name in enumerate(seen)]
    data = [
        {
            "name": label(name),
            "x": [point.step for point in leak.curve],
            "y": [round(point.success.value, 5) for point in leak.curve],
            "mode": "lines+markers",
            "line": {"width": 1.5, "dash": stroke},
            "marker": {"symbol": SIGNS.get(own.marker, SIGNS["o"])[0], "size": 7},
            "hovertext": [
                f"<b>{label(name)}</b><br>step {point.step}: {point.success.value:.3f} "
                f"[{point.success.low:.3f}, {point.success.high:.3f}]"
                f"<br>chance level {point.success.chance:.3f}"
                for point in leak.curve
            ],
            "hoverinfo": "text",
            "meta": {"colour": own.colour},
        }
        for leak, name, own, stroke in zip(leaks, names, looks, strokes, strict=True)
    ]
    axes = {"xaxis": {"title": {"text": "step"}}, "yaxis": {"title": {"text": "success"}}}
    told = [name + STROKES[stroke] for name, stroke in zip(names, strokes, strict=True)]
    return Chart(data, {**axes, "height": HEIGHT}, list(zip(told, looks, strict=True)))


def _trace(
    curve: Curve, rows: Sequence[Row], where: Mapping[tuple[Any, ...], str]
) -> dict[str, Any]:
    """A curve, whose points are these rows; `where` has for each setting the page of its record."""
    several = len(rows) > 1
    dash = curve.style if isinstance(curve.style, str) else _dashes(curve.style[1])
    return {
        "name": label(curve.name),
        "x": _plain(row["ep"] for row in rows),
        "y": _plain(row["utility"] for row in rows),
        "mode": "lines+markers" if several else "markers",
        "error_x": _error(rows, "ep"),
        "error_y": _error(rows, "utility"),
        "line": {"dash": DASHES.get(dash, dash), "width": 1.8},
        "marker": {"symbol": SIGNS.get(curve.look.marker, SIGNS["o"])[0], "size": 9},
        "hovertext": [_hover(curve.name, row) for row in rows],
        "hoverinfo": "text",
        "customdata": [where[setting_of(row)] for row in rows],
        "meta": {"colour": curve.look.colour},
    }


def _hover(name: str, row: Row) -> str:
    lines = [f"<b>{label(name)}</b>"]
    if row["label"] not in ("", name):
        lines.append(label(row["label"]))
    for title, column in (("utility", "utility"), ("empirical privacy", "ep")):
        low, high = row[f"{column}_low"], row[f"{column}_high"]
        ends = "" if math.isnan(low) or math.isnan(high) else f" [{low:.3f}, {high:.3f}]"
        how = str(row["standing"]) if column == "ep" else ""
        lines.append(f"{title} {told(f'{row[column]:.3f}{ends}', how)}")
    lines.append(f"chance level {row['ep_chance']:.3f}; attack {label(row['attack'])}")
    lines.append(ONE_SEED if row["n_seeds"] == 1 else f"{row['n_seeds']} seeds")
    if row["flags"]:
        lines.append(f"flags: {label(row['flags'].replace(',', ', '))}")
    return "<br>".join(lines)


def _error(rows: Sequence[Row], name: str) -> dict[str, Any]:
    ends: list[tuple[float, float]] = [
        (row[f"{name}_high"] - row[name], row[name] - row[f"{name}_low"]) for row in rows
    ]
    return {
        "type": "data",
        "symmetric": False,
        "array": _plain(0.0 if math.isnan(up) else up for up, _ in ends),
        "arrayminus": _plain(0.0 if math.isnan(down) else down for _, down in ends),
        "thickness": 1,
        "width": 0,
    }


def _dashes(lengths: tuple[float, ...]) -> str:
    return ",".join(f"{2 * length:g}px" for length in lengths)


def _plain(values: Iterable[float]) -> list[float | None]:
    """Numbers as JSON has them, short of digits that no screen shows."""
    return [round(float(v), 5) if math.isfinite(v) else None for v in values]
