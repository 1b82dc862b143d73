"""Figures of a collection of records, by kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING

from leakboard.bench.contracts import LeakboardError, did_you_mean
from leakboard.leaderboards.rendering import Plot, draw_figure, draw_on_axes, save, styled
from leakboard.leaderboards.tables import STRONGEST, RecordSet, goal_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIRST = "tradeoff"
KINDS = sorted(
    (path.stem for path in Path(__file__).with_name("kinds").glob("[a-z]*.py")),
    key=lambda kind: (kind != FIRST, kind),
)
"""All kinds, from the names of their files; the default first."""
WIDTHS = {"column": 3.3, "text": 7.0}
"""Widths of most two-column papers in inches."""
FORMATS = ("png", "svg", "pdf")
LEAST, MOST = 2.0, 40.0
"""Smallest and largest width of a figure in inches."""


@dataclass(frozen=True)
class Request:
    """Options of a figure; each kind uses some of them.

    Attributes:
        goal: a goal by any of its names; None for the first one with results.
        attack: strongest, paper, or the name of an attack.
        against: swept parameter, or cut.
        width: width in inches, or of one of `WIDTHS`.
        title: title above the figure; by default none, and the caption says what is drawn.
        formats: kinds of files, or several with commas; by default all.
        style: style of matplotlib: a name that it knows, or a file.

    Raises:
        LeakboardError: a kind, goal, width, kind of file or style that does not exist.
    """

    kind: str = FIRST
    goal: str | None = None
    attack: str = STRONGEST
    against: str | None = None
    width: float | str = "text"
    title: str = ""
    formats: str | Sequence[str] = ()
    style: str | None = None

    def __post_init__(self) -> None:
        # Errors of the options come before records are read.
        if self.kind not in KINDS:
            raise LeakboardError(
                f"kind: unknown '{self.kind}'. {did_you_mean(str(self.kind), KINDS)}"
            )
        _ = self.inches, self.kinds_of_files, styled(self.style)
        if self.goal is not None:
            goal_of(self.goal)

    @property
    def inches(self) -> float:
        """Width in inches.

        Raises:
            LeakboardError: an unknown word, or too narrow or too wide.
        """
        try:
            inches = float(WIDTHS.get(str(self.width), self.width))
        except (TypeError, ValueError):
            inches = nan
        if not LEAST <= inches <= MOST:
            raise LeakboardError(
                f"width: expected inches from {LEAST:g} to {MOST:g}, or {' or '.join(WIDTHS)}, got {self.width}"
            )
        return inches

    @property
    def kinds_of_files(self) -> list[str]:
        """Kinds of files.

        Raises:
            LeakboardError: an unknown one.
        """
        given = [self.formats] if isinstance(self.formats, str) else self.formats
        found = [each.strip().lower() for one in given for each in one.split(",")]
        for each in found:
            if each not in FORMATS:
                raise LeakboardError(f"format: unknown '{each}'. {did_you_mean(each, FORMATS)}")
        return list(dict.fromkeys(found)) or list(FORMATS)


def plots(found: RecordSet, request: Request) -> dict[str, Plot]:
    """Figures of a kind by file name.

    Raises:
        LeakboardError: an unknown attack, or nothing to draw.
    """
    if not found.records:
        raise LeakboardError(f"nothing to draw: {found.name} holds no records")
    kind = import_module(f"leakboard.leaderboards.figures.kinds.{request.kind}")
    return {f"{found.name}-{name}": plot for name, plot in kind.plots(found, request)}


def draw(found: RecordSet, out: Path, request: Request) -> list[Path]:
    """Draws the figures of a kind into the folder `out` and returns the files: pictures, and captions as text.

    Raises:
        LeakboardError: an unknown option, or nothing to draw.
    """
    look = request.inches, request.kinds_of_files, request.title, request.style
    drawn = plots(found, request).items()
    return [file for name, plot in drawn for file in save(plot, out / name, *look)]


def draw_axes(found: RecordSet, request: Request, ax: Axes | None = None) -> Axes:
    """Draws the figures of a kind with pyplot, or the only panel on given axes; returns the first axes.

    Raises:
        LeakboardError: an unknown option, nothing to draw, or several panels for one axes.
    """
    described = list(plots(found, request).values())
    panels = [panel for plot in described for panel in plot.panels]
    if ax is not None and len(panels) != 1:
        places = dict.fromkeys(panel.title.replace("\n", ", ") for panel in panels if panel.title)
        raise LeakboardError(
            f"ax: this figure has {len(panels)} panels ({'; '.join(places)}); leave out ax, or use records that give one panel"
        )
    if ax is not None:
        draw_on_axes(panels[0], ax)
        return ax
    import matplotlib.pyplot as plt

    with styled(request.style):
        figures = [
            draw_figure(plot, request.inches, request.title, plt.figure()) for plot in described
        ]
    return figures[0].axes[0]
