"""Placement of labels next to points, without overlap of labels and markers, and with little overlap of lines."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.transforms import Bbox

from leakboard.leaderboards.rendering.axes import SMALL
from leakboard.leaderboards.rendering.plot import Panel

DIRECTIONS = np.array([(1, 1), (-1, 1), (1, -1), (-1, -1), (0, 1), (0, -1), (1, 0), (-1, 0)])
GAPS = (4.0, 8.0)
"""Possible distances from the point, in typographic points."""
COLLISION = 50.0
"""Cost of covering a label or a marker, the most that covering lines can cost."""
GROUND: dict[str, Any] = {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.4}
"""Pale background, since outlined text cannot be searched in a PDF."""


def label_points(ax: Axes, panel: Panel) -> None:
    """Writes the labels of points in their order, each where it covers nothing; others are left out.

    Lines are avoided. The layout and the limits of the axes must not change afterwards.
    """
    figure = ax.get_figure(root=True)
    assert figure is not None
    pixels = float(figure.dpi / 72)
    points = [(one, series.colour) for series in panel.series for one in series.measured]
    dots = np.reshape([(one.x.value, one.y.value) for one, _ in points], (-1, 2))
    dots = ax.transData.transform(dots)
    lines = [one for one in ax.lines if one.get_linestyle() != "None"]
    paths = [one.get_transform().transform_path(one.get_path()) for one in lines]
    trace = np.concatenate([np.empty((0, 2)), *(path.interpolated(100).vertices for path in paths)])
    taken: list[Bbox] = []
    for (one, colour), dot in zip(points, dots, strict=True):
        if not one.label:
            continue
        label = ax.annotate(
            one.label,
            (one.x.value, one.y.value),
            xytext=(0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=SMALL,
            color=[0.75 * channel for channel in to_rgb(colour)],  # for contrast on white
            bbox=GROUND,
            zorder=5,
        )
        half = np.divide(label.get_window_extent().size, 2)
        # Diagonal positions are closer, so that labels do not look detached.
        near = np.where(DIRECTIONS.all(axis=1), 0.6, 1.0)[:, None]
        reach = np.array(GAPS)[:, None, None] * pixels * near
        shifts = (DIRECTIONS * (half + reach)).reshape(-1, 2)
        costs = list[float]()
        for n, box in enumerate(Bbox([dot + at - half, dot + at + half]) for at in shifts):
            covered = box.count_overlaps(taken) + box.padded(3 * pixels).count_contains(dots)
            is_outside = ax.bbox.count_contains(box.corners()) < 4
            crossed = min(box.padded(pixels).count_contains(trace), COLLISION - 2)
            costs.append(COLLISION * (covered + is_outside) + crossed + n / 24)
        best = int(np.argmin(costs))
        if costs[best] >= COLLISION:
            label.remove()
            continue
        label.set_position(shifts[best] / pixels)
        taken.append(Bbox([dot + shifts[best] - half, dot + shifts[best] + half]))
