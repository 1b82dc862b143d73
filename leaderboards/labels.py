"""Names beside the points of a plot, clear of other names, of markers and, if possible, of lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DIRECTIONS = [(1, 1), (-1, 1), (1, -1), (-1, -1), (0, 1), (0, -1), (1, 0), (-1, 0)]
GAPS = (4.0, 8.0, 16.0, 24.0)
"""Distances from the point that are tried, in typographic points."""
LEADER = 9.0
"""From this distance on a thin line leads to the point; only a required label goes so far."""
CROWD = 4.0
"""Markers closer than this, in typographic points, cannot be told apart by a label."""
COLLISION = 50.0
"""Cost of covering a name or a marker; covering a line costs 1 for each pixel or so."""
BACKGROUND: dict[str, Any] = {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.4}
"""A pale ground, not an outline: outlined text cannot be searched in a PDF."""
LEADING: dict[str, Any] = {"arrowstyle": "-", "linewidth": 0.4, "shrinkA": 0, "shrinkB": 2}


@dataclass(frozen=True)
class Label:
    """A name for the point (x, y) in data units.

    `short` is tried where `text` does not fit. Where neither fits, or where other markers cover
    the point, only a required label stays.
    """

    x: float
    y: float
    text: str
    colour: tuple[float, ...]
    short: str = ""
    required: bool = False


@dataclass(frozen=True)
class Place:
    """Centre of a label in pixels from its point, and what stands in its way there."""

    dx: float
    dy: float
    gap: float
    box: Floats
    cost: float


def place(
    ax: Axes, labels: Sequence[Label], markers: Floats, lines: Sequence[Floats], size: float
) -> None:
    """Draws the labels, the required ones first.

    Args:
        ax: laid out already; its limits must not change afterwards.
        markers: [n, 2] points in data units that no label may cover.
        lines: [m, 2] corners in data units of each line that labels should avoid.
        size: of the font, in typographic points.
    """
    dots = ax.transData.transform(markers)
    strokes = [_sampled(ax.transData.transform(line)) for line in lines]
    trace = np.concatenate([np.empty((0, 2)), *strokes])
    taken: list[Floats] = []
    named: defaultdict[str, list[Floats]] = defaultdict(list)
    for label in sorted(labels, key=lambda label: not label.required):
        point = ax.transData.transform((label.x, label.y))
        # Where curves run together, one label serves the points that share its knob.
        near = (np.hypot(*(point - other)) < CROWD * _pixels(ax) for other in named[label.short])
        if not label.required and any(near):
            continue
        tried = [
            (text, _best(ax, label, text, size, dots, trace, taken))
            for text in dict.fromkeys([label.text, label.short])
            if text
        ]
        fits = [found for found in tried if found[1].cost < COLLISION]
        if not fits and not label.required:
            continue
        text, chosen = fits[0] if fits else min(tried, key=lambda found: found[1].cost)
        taken.append(chosen.box)
        named[label.short].append(point)
        _write(ax, label, text, chosen, size)


def _best(
    ax: Axes, label: Label, text: str, size: float, dots: Floats, trace: Floats, taken: list[Floats]
) -> Place:
    point = ax.transData.transform((label.x, label.y))
    half = _extent(ax, text, size) / 2
    pixels = _pixels(ax)
    frame = ax.bbox.extents
    found = []
    gaps = GAPS if label.required else [gap for gap in GAPS if gap < LEADER]
    for rank, (gap, (right, up)) in enumerate((g, d) for g in gaps for d in DIRECTIONS):
        # A diagonal neighbour stands closer, or it would look detached.
        reach = gap * pixels * (0.6 if right and up else 1)
        shift = np.array([right, up]) * (half + reach)
        box = np.concatenate([point + shift - half, point + shift + half])
        collisions = sum(_overlap(box, other) for other in taken) + _inside(dots, box, 3.0 * pixels)
        outside = bool((box[:2] < frame[:2]).any() or (box[2:] > frame[2:]).any())
        cost = (collisions + 20 * outside) * COLLISION
        cost += min(_inside(trace, box, pixels), COLLISION - 2) + rank / 24
        found.append(Place(float(shift[0]), float(shift[1]), gap, box, cost))
    return min(found, key=lambda candidate: candidate.cost)


def _write(ax: Axes, label: Label, text: str, chosen: Place, size: float) -> None:
    pixels = _pixels(ax)
    note = ax.annotate(
        text,
        (label.x, label.y),
        xytext=(chosen.dx / pixels, chosen.dy / pixels),
        textcoords="offset points",
        ha="center",
        va="center",
        fontsize=size,
        color=label.colour,
        bbox=BACKGROUND,
        arrowprops=LEADING | {"color": label.colour} if chosen.gap >= LEADER else None,
        zorder=5,
    )
    note.set_in_layout(False)


def _extent(ax: Axes, text: str, size: float) -> Floats:
    """Width and height of a text in pixels."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    probe = ax.text(0, 0, text, fontsize=size, transform=None)
    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    box = probe.get_window_extent(renderer)
    probe.remove()
    return np.array([box.width, box.height])


def _pixels(ax: Axes) -> float:
    """Pixels per typographic point."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    return float(figure.dpi / 72)


def _sampled(corners: Floats, step: float = 3.0) -> Floats:
    """Points about `step` pixels apart along a line."""
    parts = [np.linspace(a, b, int(np.hypot(*(b - a)) / step) + 2) for a, b in pairwise(corners)]
    return np.concatenate([np.empty((0, 2)), *parts])


def _overlap(a: Floats, b: Floats) -> bool:
    return bool((a[:2] < b[2:]).all() and (b[:2] < a[2:]).all())


def _inside(xy: Floats, box: Floats, margin: float) -> int:
    """How many points lie in a box widened by a margin."""
    return int(((xy > box[:2] - margin) & (xy < box[2:] + margin)).all(axis=1).sum())
