"""Placement of labels next to points, without overlap of labels and markers, and with little overlap of lines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray

from leakboard.leaderboards.rendering.plot import Point

Floats = NDArray[np.float64]

DIRECTIONS = np.array([(1, 1), (-1, 1), (1, -1), (-1, -1), (0, 1), (0, -1), (1, 0), (-1, 0)])
GAPS = (4.0, 8.0)
"""Possible distances from the point, in typographic points."""
COLLISION = 50.0
"""Cost of covering a label or a marker; covering a line costs about 1 per pixel."""
GROUND: dict[str, Any] = {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.4}
"""Pale background, since outlined text cannot be searched in a PDF."""


def place_labels(
    ax: Axes,
    points: Sequence[tuple[Point, str]],
    markers: Floats,
    lines: Sequence[Floats],
    size: float,
) -> None:
    """Draws labels of points in their order, each at a position where it covers nothing; others are left out.

    Args:
        ax: axes with a final layout; limits must not change afterwards.
        points: points with their colours.
        markers: [n, 2] points in data units that labels must not cover.
        lines: [m, 2] corners in data units of each line that labels should avoid.
        size: font size in typographic points.
    """
    figure = ax.get_figure(root=True)
    assert isinstance(figure, Figure)
    pixels = float(figure.dpi / 72)
    dots = ax.transData.transform(markers)
    trace = np.concatenate(
        [np.empty((0, 2)), *(_sampled(ax.transData.transform(line)) for line in lines)]
    )
    taken: list[Floats] = []
    for one, colour in points:
        point = ax.transData.transform((one.x.value, one.y.value))
        probe = ax.text(0, 0, one.label, fontsize=size, transform=None)
        box = probe.get_window_extent()
        probe.remove()
        half = np.array([box.width, box.height]) / 2
        # Diagonal positions are closer, so that labels do not look detached.
        near = np.where(DIRECTIONS.all(axis=1), 0.6, 1.0)[:, None]
        reach = np.array(GAPS)[:, None, None] * pixels * near
        shifts = (DIRECTIONS * (half + reach)).reshape(-1, 2)
        boxes = np.concatenate([point + shifts - half, point + shifts + half], axis=1)
        frame = ax.bbox.extents
        outside = (boxes[:, :2] < frame[:2]).any(axis=1) | (boxes[:, 2:] > frame[2:]).any(axis=1)
        blocked = _overlapping(boxes, np.reshape(taken, (-1, 4))) + _inside(dots, boxes, 3 * pixels)
        costs = COLLISION * (blocked + 20 * outside)
        costs = costs + np.minimum(_inside(trace, boxes, pixels), COLLISION - 2)
        costs = costs + np.arange(len(boxes)) / 24
        best = int(costs.argmin())
        if costs[best] >= COLLISION:
            continue
        taken.append(boxes[best])
        ax.annotate(
            one.label,
            (one.x.value, one.y.value),
            xytext=tuple(shifts[best] / pixels),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=size,
            color=[0.75 * channel for channel in to_rgb(colour)],  # for contrast on white
            bbox=GROUND,
            zorder=5,
        )


def _sampled(corners: Floats, step: float = 3.0) -> Floats:
    """Points along a line at distances of about `step` pixels."""
    parts = [np.linspace(a, b, int(np.hypot(*(b - a)) / step) + 2) for a, b in pairwise(corners)]
    return np.concatenate([np.empty((0, 2)), *parts])


def _overlapping(boxes: Floats, others: Floats) -> NDArray[np.int_]:
    """Number of other boxes [left, bottom, right, top] that each box overlaps."""
    a, b = boxes[:, None], others[None]
    meet = (a[..., :2] < b[..., 2:]) & (b[..., :2] < a[..., 2:])
    return np.asarray(meet.all(axis=-1).sum(axis=1))


def _inside(xy: Floats, boxes: Floats, margin: float) -> NDArray[np.int_]:
    """Number of points in each box, widened by a margin."""
    low, high = boxes[:, None, :2] - margin, boxes[:, None, 2:] + margin
    inside: NDArray[np.int_] = ((xy > low) & (xy < high)).all(axis=-1).sum(axis=1)
    return inside
