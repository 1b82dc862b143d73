"""Names beside the points of a plot, clear of other names, of markers and, if possible, of lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DIRECTIONS = np.array([(1, 1), (-1, 1), (1, -1), (-1, -1), (0, 1), (0, -1), (1, 0), (-1, 0)])
GAPS = (4.0, 8.0, 16.0, 24.0)
"""Distances from the point that are tried, in typographic points."""
FAR = (36.0, 52.0, 72.0, 96.0)
"""The same where a required label would cover something at all of these."""
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

    shift: Floats
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
    renderer = FigureCanvasAgg(_figure(ax)).get_renderer()  # type: ignore[no-untyped-call]
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
            (text, _best(ax, label, _extent(ax, text, size, renderer), dots, trace, taken))
            for text in dict.fromkeys([label.text, label.short])
            if text
        ]
        fits = [found for found in tried if found[1].cost < COLLISION]
        if not fits and not label.required:
            continue
        if not fits:
            text = min(filter(None, [label.short, label.text]), key=len)
            extent = _extent(ax, text, size, renderer)
            tried.append((text, _best(ax, label, extent, dots, trace, taken, FAR)))
        text, chosen = fits[0] if fits else min(tried, key=lambda found: found[1].cost)
        taken.append(chosen.box)
        named[label.short].append(point)
        _write(ax, label, text, chosen, size)


def _best(
    ax: Axes,
    label: Label,
    extent: Floats,
    dots: Floats,
    trace: Floats,
    taken: list[Floats],
    tried: Sequence[float] = GAPS,
) -> Place:
    point = ax.transData.transform((label.x, label.y))
    half = extent / 2
    pixels = _pixels(ax)
    frame = ax.bbox.extents
    gaps = np.array([gap for gap in tried if label.required or gap < LEADER])
    # A diagonal neighbour stands closer, or it would look detached.
    reach = gaps[:, None, None] * pixels * np.where(DIRECTIONS.all(axis=1), 0.6, 1.0)[:, None]
    shifts = (DIRECTIONS * (half + reach)).reshape(-1, 2)
    boxes = np.concatenate([point + shifts - half, point + shifts + half], axis=1)
    collisions = _overlapping(boxes, np.reshape(taken, (-1, 4))) + _inside(dots, boxes, 3 * pixels)
    outside = (boxes[:, :2] < frame[:2]).any(axis=1) | (boxes[:, 2:] > frame[2:]).any(axis=1)
    costs = (collisions + 20 * outside) * COLLISION
    costs = costs + np.minimum(_inside(trace, boxes, pixels), COLLISION - 2)
    costs = costs + np.arange(len(boxes)) / 24
    best = int(costs.argmin())
    gap = float(gaps[best // len(DIRECTIONS)])
    return Place(shifts[best], gap, boxes[best], float(costs[best]))


def _write(ax: Axes, label: Label, text: str, chosen: Place, size: float) -> None:
    pixels = _pixels(ax)
    note = ax.annotate(
        text,
        (label.x, label.y),
        xytext=tuple(chosen.shift / pixels),
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


def _extent(ax: Axes, text: str, size: float, renderer: RendererBase) -> Floats:
    """Width and height of a text in pixels."""
    probe = ax.text(0, 0, text, fontsize=size, transform=None)
    box = probe.get_window_extent(renderer)
    probe.remove()
    return np.array([box.width, box.height])


def _pixels(ax: Axes) -> float:
    """Pixels per typographic point."""
    return float(_figure(ax).dpi / 72)


def _figure(ax: Axes) -> Figure:
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def _sampled(corners: Floats, step: float = 3.0) -> Floats:
    """Points about `step` pixels apart along a line."""
    parts = [np.linspace(a, b, int(np.hypot(*(b - a)) / step) + 2) for a, b in pairwise(corners)]
    return np.concatenate([np.empty((0, 2)), *parts])


def _overlapping(boxes: Floats, others: Floats) -> NDArray[np.int_]:
    """For each box [left, bottom, right, top] how many of the others it overlaps."""
    a, b = boxes[:, None], others[None]
    meet = (a[..., :2] < b[..., 2:]) & (b[..., :2] < a[..., 2:])
    return np.asarray(meet.all(axis=-1).sum(axis=1))


def _inside(xy: Floats, boxes: Floats, margin: float) -> NDArray[np.int_]:
    """For each box how many points lie in it, widened by a margin."""
    low, high = boxes[:, None, :2] - margin, boxes[:, None, 2:] + margin
    inside: NDArray[np.int_] = ((xy > low) & (xy < high)).all(axis=-1).sum(axis=1)
    return inside
