"""The page on which a figure stands."""

from __future__ import annotations

from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from leaderboards.figures.legend import GREY


class Sheet:
    """A figure with its title above the panels, and the legend and a note below them."""

    def __init__(self, width: float, body: float, title: str, note: str, entries: int = 0) -> None:
        lines = fill(note, int(width / 0.052))
        rows = -(-entries // max(1, int(width / 1.5)))
        foot = 0.17 * rows + 0.13 * (lines.count("\n") + 1) + 0.15
        self.figure = Figure(figsize=(width, body + foot), layout="constrained")
        above, self._below = np.ravel(
            np.asarray(self.figure.subfigures(2, 1, height_ratios=[body, foot]))
        )
        self.above: SubFigure = above
        self.above.suptitle(title, fontsize=10, fontweight="bold")
        self._below.text(0.5, 0.05, lines, fontsize=6.5, color=GREY, ha="center", va="bottom")
        self._columns = max(1, int(width / 1.5))

    def legend(self, ax: Axes) -> None:
        """Shows the entries of one panel, which stand for those of all."""
        handles, names = ax.get_legend_handles_labels()
        if len(names) > 0:
            # Long enough that a dash shows beside the marker.
            place = {"loc": "upper center", "bbox_to_anchor": (0.5, 1.0), "handlelength": 3.6}
            self._below.legend(handles, names, ncols=min(self._columns, len(names)), **place)
