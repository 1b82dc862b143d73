"""What the signs in a figure mean: how each is drawn, and the legend that says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D

from leakboard.leaderboards.figures.curves import Curve

GREY = "#6b6b6b"
UNDEFENDED: dict[str, Any] = {"color": GREY, "linewidth": 0.8, "linestyle": (0, (5, 3))}
BEFORE: dict[str, Any] = {"color": GREY, "linewidth": 0.8, "linestyle": (0, (1, 2.5))}
"""The utility of the untuned model."""
CHANCE: dict[str, Any] = {"color": GREY, "linewidth": 0.8, "linestyle": ":"}
ENVELOPE: dict[str, Any] = {"color": "#dadada", "linewidth": 3, "solid_joinstyle": "round"}
HIDDEN: dict[str, Any] = {
    "facecolor": "#f2f2f2",
    "edgecolor": "#d4d4d4",
    "linewidth": 0,
    "hatch": "////",
}
"""A field that could hold any value: nothing is shown of it."""
LINE = 0.165
"""Inches from one line of the legend to the next."""


def darker(colour: str) -> tuple[float, ...]:
    """A colour for small text: light ones would fade on white."""
    return tuple(0.75 * channel for channel in to_rgb(colour))


def drawn(marker: str, colour: Any, hollow: bool) -> dict[str, Any]:
    """A line with markers, as arguments of `Line2D`; hollow and thin what a paper prints."""
    return {
        "color": colour,
        "linewidth": 0.9 if hollow else 1.3,
        "marker": marker,
        "markersize": 4.8,
        "markerfacecolor": "white" if hollow else colour,
        "markeredgecolor": colour if hollow else "white",
        "markeredgewidth": 0.9 if hollow else 0.5,
    }


def strokes(curve: Curve) -> dict[str, Any]:
    """Line and marker of a curve, as arguments of matplotlib's `Line2D`."""
    look = curve.look
    return {
        **drawn(look.marker, look.colour, curve.hollow),
        "linestyle": curve.style if len(curve.rows) > 1 else "none",
        "markersize": 7.5 if look.marker == "*" else 4.8,
    }


def keys(curves: Sequence[Curve]) -> list[Line2D]:
    """Legend entries of the curves; a point that bears its defense's name needs none."""
    # A curve in one task may be a single point in another; the legend shows the curve.
    longest: dict[str, Curve] = {}
    for curve in sorted(curves, key=lambda curve: -len(curve.rows)):
        longest.setdefault(curve.name, curve)
    return [
        Line2D([], [], **strokes(longest[name]), label=name)
        for name in dict.fromkeys(curve.name for curve in curves)
        if set(longest[name].rows["label"]) != {name}
    ]


def references(undefended: bool, untuned: bool) -> list[Line2D]:
    """Legend entries of what is drawn for orientation."""
    shown = [Line2D([], [], **UNDEFENDED, label="undefended")] if undefended else []
    shown += [Line2D([], [], **BEFORE, label="untuned model")] if untuned else []
    return [
        *shown,
        Line2D([], [], **CHANCE, label="chance level"),
        Line2D([], [], **ENVELOPE, label="Pareto envelope"),
    ]


def per_row(handles: Sequence[Line2D], width: float) -> int:
    """How many legend entries fit beside each other in `width` inches."""
    longest = max((len(str(handle.get_label())) for handle in handles), default=0)
    return max(1, min(len(handles), int(width / (0.6 + 0.054 * longest))))
