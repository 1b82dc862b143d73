"""Plots as files, drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from textwrap import fill
from typing import Any

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure
from matplotlib.transforms import Bbox

from leakboard.bench.contracts import LeakboardError, did_you_mean
from leakboard.bench.records import replacing
from leakboard.leaderboards.rendering.axes import draw_panel, legend_entries
from leakboard.leaderboards.rendering.labels import label_points
from leakboard.leaderboards.rendering.plot import Panel, Plot, split_plot

WIDTH = 7.0
"""Default width in inches, the text width of most two-column papers."""
LEAST = 2.75
"""Smallest width of a panel of weight 1 in inches; narrow figures have fewer panels per row."""
METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
"""Metadata of each kind of file, without what differs between equal figures."""
STYLE = Path(__file__).with_name("paper.mplstyle")
LEGEND = 7.0 / 72 * 1.45
"""Height of a line of a legend in inches."""


def save(
    plot: Plot,
    out: Path,
    width: float = WIDTH,
    kinds: Sequence[str] = tuple(METADATA),
    title: str = "",
    look: str | None = None,
) -> list[Path]:
    """Draws a plot and writes its files, and its caption as text; equal plots give equal bytes.

    Args:
        out: path of the files; a suffix of a picture is replaced.
        width: width in inches; font sizes stay unchanged.
        kinds: kinds of files: png (200 dpi), svg, pdf.
        title: title above the panels.
        look: style of matplotlib, see `styled`.
    """
    stem = out.with_suffix("") if out.suffix[1:] in METADATA else out
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in kinds]
    with styled(look):
        figure = draw_figure(plot, width, title)
        for path, kind in zip(paths, kinds, strict=True):
            with replacing(path) as file:
                figure.savefig(file, format=kind, dpi=200, metadata=METADATA[kind])
    caption = stem.with_name(f"{stem.name}.txt")
    caption.write_text("\n\n".join(filter(None, [f"{plot.title}.", plot.caption])) + "\n", "utf-8")
    return [*paths, caption]


def styled(look: str | None = None) -> AbstractContextManager[None]:
    """Context with the style of all figures.

    Args:
        look: style that goes before it: a name that matplotlib knows, or a file.

    Raises:
        LeakboardError: no such style.
    """
    if look is not None and look not in style.available and not Path(look).is_file():
        raise LeakboardError(
            f"style: matplotlib has no style '{look}', and there is no such file. {did_you_mean(look, style.available)}"
        )
    return style.context(["default", str(STYLE), *filter(None, [look])])


def draw_figure(
    plot: Plot, width: float = WIDTH, title: str = "", figure: Figure | None = None
) -> Figure:
    """A figure with title, rows of panels and legends, from top to bottom.

    A plot with more names than a legend may have is split; each part has its own legend.

    Args:
        figure: empty figure to draw on; by default a new one.
    """
    figure = figure or Figure()
    parts = [_Part(part, width) for part in split_plot(plot)]
    title = fill(title, int(width / 0.088))
    head = 0.17 * (title.count("\n") + 1) + 0.1 if title else 0.0
    figure.set_size_inches(width, sum(part.height for part in parts) + head)
    figure.set_layout_engine("constrained")
    if not isinstance(figure.canvas, FigureCanvasAgg):
        FigureCanvasAgg(figure)  # measures text
    ratios = [part.height for part in parts]
    frames = figure.subfigures(len(parts), 1, squeeze=False, height_ratios=ratios)
    axes: list[tuple[Axes, Panel]] = []
    for part, frame in zip(parts, frames[:, 0], strict=True):
        axes += part.draw(frame)
        vars(frame)["savefig"] = figure.savefig  # the `figure` of axes is a part, which has none
    if title:
        figure.suptitle(title)
    _settle(figure)
    for ax, panel in axes:
        label_points(ax, panel)
    return figure


class _Part:
    """Rows of panels with one legend."""

    def __init__(self, plot: Plot, width: float) -> None:
        weights = [panel.weight for panel in plot.panels]
        columns = next(
            n for n in range(plot.columns, 0, -1) if n == 1 or sum(weights[:n]) * LEAST <= width
        )
        self.rows = [plot.panels[n : n + columns] for n in range(0, len(plot.panels), columns)]
        self.heights = [max(panel.height for panel in row) for row in self.rows]
        self.handles = legend_entries(plot.panels)
        for handle in self.handles:
            handle.set_label(fill(str(handle.get_label()), int((width - 0.6) / 0.052)))
        labels = [str(handle.get_label()).split("\n") for handle in self.handles]
        longest = max((len(line) for label in labels for line in label), default=0)
        self.per_row = max(1, min(len(labels), int(width / (0.55 + 0.052 * longest))))
        tallest = (
            max(map(len, labels[n : n + self.per_row])) for n in range(0, len(labels), self.per_row)
        )
        lines = sum(tallest)
        self.height = sum(self.heights) + LEGEND * lines + (0.1 if lines else 0.0)

    def draw(self, frame: SubFigure) -> list[tuple[Axes, Panel]]:
        """Draws the part, and returns its axes with their panels."""
        grid = frame.add_gridspec(len(self.rows), 1, height_ratios=self.heights)
        axes: list[tuple[Axes, Panel]] = []
        for place, row in enumerate(self.rows):
            weights = [panel.weight for panel in row]
            weights += [self.rows[0][n].weight for n in range(len(row), len(self.rows[0]))]
            inner = grid[place].subgridspec(1, len(weights), width_ratios=weights)
            axes += [(frame.add_subplot(inner[n]), panel) for n, panel in enumerate(row)]
        first = {id(row[0]) for row in self.rows}
        for ax, panel in axes:
            draw_panel(ax, panel)
            if panel.y.shared and id(panel) not in first:
                ax.set_yticklabels([])
        if self.handles:
            frame.legend(
                handles=self.handles,
                loc="outside lower center",
                ncols=self.per_row,
                handlelength=3.0,
            )
        return axes


def draw_on_axes(panel: Panel, ax: Axes) -> None:
    """Draws a panel on axes of the caller, in the caller's style, with its legend inside."""
    draw_panel(ax, panel)
    handles = legend_entries([panel])
    if handles:
        ax.legend(handles=handles, handlelength=3.0)
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    label_points(ax, panel)


def _settle(figure: Figure) -> None:
    """Computes the layout once and rounds it, so that files are equal in every run and format.

    The layout engine solves equations in a varying order, which changes rounding errors.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine(None)
    for ax in figure.axes:
        ax.set_position(Bbox(ax.get_position().get_points().round(6)))
