"""The page on which a figure stands: its style, its parts, and how it becomes files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from fontTools import subset
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.transforms import Bbox

from leakboard.leaderboards.figures.legend import GREY

SMALL = 6.5
"""Points; the size of labels and notes."""
TITLE = 0.09
"""Inches of a letter of a title."""
WIDTHS = {1: 5.2, 2: 7.4, 3: 11.0}
"""Inches, by the number of panels beside each other."""
METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
RC = {
    "figure.dpi": 200,
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.titlesize": 8.5,
    # Said, for else each drawing looks for what a title might cover.
    "axes.titley": 1.0,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#ececec",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "legend.borderaxespad": 0,
    "legend.borderpad": 0.1,
    # Without a salt the ids in an SVG are random; fonttype 42 keeps the text of a PDF searchable.
    "svg.hashsalt": "leakboard",
    "pdf.fonttype": 42,
    # Names come from records; a dollar in one is a dollar.
    "text.parse_math": False,
}


def styled(**more: Any) -> AbstractContextManager[None]:
    """The style of all figures, for what is drawn inside; `more` are further settings of matplotlib."""
    return style.context(["default", RC, more])


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
        self.above.suptitle(fill(title, int(width / TITLE)), fontsize=10, fontweight="bold")
        self._below.text(0.5, 0.05, lines, fontsize=SMALL, color=GREY, ha="center", va="bottom")
        self._columns = max(1, int(width / 1.5))

    def legend(self, ax: Axes) -> None:
        """Shows the entries of one panel, which stand for those of all."""
        handles, names = ax.get_legend_handles_labels()
        if len(names) > 0:
            # Long enough that a dash shows beside the marker.
            place = {"loc": "upper center", "bbox_to_anchor": (0.5, 1.0), "handlelength": 3.6}
            self._below.legend(handles, names, ncols=min(self._columns, len(names)), **place)


def save(figure: Figure, out: Path) -> list[Path]:
    """Writes a figure as .png, .svg and .pdf; equal figures give equal bytes."""
    stem = out.with_suffix("") if out.suffix[1:] in METADATA else out
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in METADATA]
    settle(figure)
    with _fonts_without_rules():
        for path, metadata in zip(paths, METADATA.values(), strict=True):
            figure.savefig(path, dpi=200, metadata=metadata)
    return paths


@contextmanager
def _fonts_without_rules() -> Iterator[None]:
    """Spares the names of the glyphs of a font, its characters, and the rules of a typesetter.

    A PDF that places each glyph by its number, and says itself which character it is, needs none of
    them, but to read those of DejaVu would take most of the time of writing it. matplotlib offers no
    way to say so.
    """
    whole = subset.load_font

    def without(*args: Any, **kwargs: Any) -> Any:
        font = whole(*args, **kwargs, dontLoadGlyphNames=True)
        for table in ("GDEF", "GPOS", "GSUB", "MATH", "OS/2", "cmap", "kern", "name"):
            if table in font:
                del font[table]
        return font

    subset.load_font = without
    try:
        yield
    finally:
        subset.load_font = whole


def settle(figure: Figure) -> None:
    """Lays a figure out, once: afterwards nothing moves, whatever is added, in whatever format.

    The layout is a solution of equations whose order differs from run to run, and with it the
    rounding, so places are rounded; SVG names its clip paths by a hash of these numbers.
    """
    if figure.get_layout_engine() is None:
        return
    figure.draw_without_rendering()
    # "none" would leave a stand-in, for whose sake each format is drawn twice.
    figure.set_layout_engine(None)
    for part in figure.subfigs:
        part.bbox_relative.set_points(part.bbox_relative.get_points().round(6))
    for ax in figure.axes:
        ax.set_position(Bbox(ax.get_position().get_points().round(6)))
