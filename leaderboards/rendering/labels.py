"""Placement of labels next to points, without overlap of labels and markers, and with little overlap of lines."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray

from leakboard.leaderboards.rendering.axes import SMALL
from leakboard.leaderboards.rendering.plot import Panel, Reference, Series

Floats = NDArray[np.float64]

DIRECTIONS = np.array([(1, 1), (-1, 1), (1, -1), (-1, -1), (0, 1), (0, -1), (1, 0), (-1, 0)])
GAPS = (4.0, 8.0)
"""Possible distances from the point, in typographic points."""
COLLISION = 50.0
"""Cost of covering a label or a marker; covering a line costs about 1 per pixel."""
GROUND: dict[str, Any] = {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.4}
"""Pale background, since outlined text cannot be searched in a PDF."""


def label_points(ax: Axes, panel: Panel) -> None:
    """Writes the labels of points in their order, each where it covers nothing; others are left out.

    Lines are avoided. The layout and the limits of the axes must not change afterwards.
    """
    points = [(one, own.colour) for own in panel.series for one in own.measured if one.label]
    if not points:
        return
    figure = ax.get_figure(root=True)
    assert isinstance(figure, Figure)
    pixels = float(figure.dpi / 72)
    markers = [(series, ax.transData.transform(_corners(series))) for series in panel.series]
    dots = np.concatenate([found for _, found in markers])
    lines = [found for series, found in markers if series.line and len(found)]
    lines += [ax.transData.transform(_across(ax, reference)) for reference in panel.references]
    trace = np.concatenate([np.empty((0, 2)), *map(_sampled, lines)])
    taken: list[Floats] = []
    for one, colour in points:
        point = ax.transData.transform((one.x.value, one.y.value))
        probe = ax.text(0, 0, one.label, fontsize=SMALL, transform=None)
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
            fontsize=SMALL,
            color=[0.75 * channel for channel in to_rgb(colour)],  # for contrast on white
            bbox=GROUND,
            zorder=5,
        )


def _corners(series: Series) -> Floats:
    """[n, 2] measured points in data units."""
    shown = [(point.x.value, point.y.value) for point in series.measured]
    return np.reshape(np.array(shown, float), (-1, 2))


def _across(ax: Axes, reference: Reference) -> Floats:
    """[2, 2] ends of a reference in data units."""
    ends = ax.get_xlim() if reference.axis == "y" else ax.get_ylim()
    line = np.array([[end, reference.value] for end in ends])
    return line if reference.axis == "y" else line[:, ::-1]


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
