"""The figure of the matrix: what each defense keeps against each goal, beside what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from leakboard.bench.contracts import GLOSSARY, LeakboardError
from leakboard.leaderboards.figures.drawing import Asked
from leakboard.leaderboards.figures.legend import GREY, HIDDEN
from leakboard.leaderboards.figures.sheet import Sheet, save, settle, styled
from leakboard.leaderboards.tables import (
    NOTHING_WORKS,
    Line,
    Matrix,
    RecordSet,
    Shield,
    look,
    matrices,
)

ROW, CELL = 0.36, 1.15
"""Inches of a defense and of a goal."""
HEAD = 1.1
"""Inches of what stands above and below the fields."""
LINE, LETTER = 0.15, 0.078
"""Inches of a line of the title of a matrix, and of a letter in it."""
MAP = colormaps["cividis_r"]
FOOT = 0.44
"""Below the middle of a field, of its height: where text of two lines ends."""
FULL = 0.92
"""Of the width of a field: what its text may take."""
DARK = 0.55
"""Of the privacy kept: from here on the letters are white."""
NOTE = (
    f"Number: privacy under the strongest attack. {GLOSSARY['privacy']} With its 95 % interval over seeds "
    "or examples, and the attack. Each defense at one setting: of those that lose at most {budget:g} points, the one that keeps most of what its authors "
    "protect; in brackets where every setting loses more. Not shown: no attack that finds something there, or "
    "that works where the defense is switched off. ≤: at most so much, since what found the rest "
    "is not shown to work there. –: nothing is sent that such an attack reads."
)


def plot(found: RecordSet, out: Path, asked: Asked) -> list[Path]:
    """What each defense protects, and what it costs: the matrix of `board`."""
    title = f"{found.name}: what each defense protects, and what it costs"
    return goals(matrices(found.compared), out / f"{found.name}-goals", title)


def goals(found: Sequence[Matrix], out: Path, title: str) -> list[Path]:
    """Draws one matrix below the other, as `leakboard.leaderboards.tables.matrix` makes them.

    Raises:
        LeakboardError: there is none.
    """
    if not found:
        raise LeakboardError(
            "nothing to plot: a matrix compares several defenses on one task and model, and these "
            "records hold no such comparison"
        )
    wide = max(len(one.aims) for one in found)
    width = 4.1 + CELL * wide
    titles = [fill(_about(one), int(width / LETTER)) for one in found]
    heights = [
        ROW * len(one.lines) + HEAD + LINE * text.count("\n")
        for one, text in zip(found, titles, strict=True)
    ]
    with styled(**{"axes.grid": False}):
        note = NOTE.format(budget=found[0].budget)
        sheet = Sheet(width, sum(heights), title, note)
        parts = sheet.above.subfigures(len(found), 1, squeeze=False, height_ratios=heights)[:, 0]
        fields = []
        for part, one, text in zip(parts, found, titles, strict=True):
            part.suptitle(text, fontsize=8.5, fontweight="bold")
            costs, cells = part.subplots(1, 2, width_ratios=[1.6, CELL * wide])
            _costs(costs, one)
            _cells(cells, one, wide)
            fields.append(cells)
        settle(sheet.figure)  # before, nobody knows how wide a field is
        for cells in fields:
            _fit(cells)
        return save(sheet.figure, out)


def _about(matrix: Matrix) -> str:
    one = matrix.comparison
    return f"{one.task} · {one.model} · {one.words}"


def _costs(ax: Axes, one: Matrix) -> None:
    """Points of utility lost, with their intervals."""
    ax.axvspan(-100, one.budget, color="#f2f2f2", zorder=0)
    ax.axvline(0, color=GREY, linewidth=0.8)
    for y, line in enumerate(one.lines):
        points, low, high = (float(line.lost[name]) for name in ("points", "low", "high"))
        how = look(line.defense)
        reach = [[points - low], [high - points]]
        sign: dict[str, Any] = {"color": how.colour, "marker": how.marker, "markersize": 5.5}
        ax.errorbar([points], [y], xerr=reach, elinewidth=1.3, linestyle="none", **sign)
    reached = max(one.budget, *(float(line.lost["high"]) for line in one.lines))
    least = min(0.0, *(float(line.lost["low"]) for line in one.lines))
    names = [_label(line) for line in one.lines]
    ax.set(xlim=(least - 1, reached + 1), ylim=(len(one.lines) - 0.5, -0.5))
    ax.set_yticks(range(len(names)), names)
    ax.set_xlabel("points of utility lost →")


def _label(line: Line) -> str:
    text = line.named if line.within else f"({line.named})"
    return text if line.claimed in ("–", line.label) else f"{text}\nclaims {line.claimed}"


def _cells(ax: Axes, one: Matrix, wide: int) -> None:
    """A field for each defense and goal."""
    for y, line in enumerate(one.lines):
        for x, aim in enumerate(one.aims):
            _field(ax, x, y, line.shields[aim])
    ax.set(xlim=(-0.5, wide - 0.5), ylim=(len(one.lines) - 0.5, -0.5))
    names = [
        fill(" ".join(aim).strip(), 14)
        + (f"\n({fill(NOTHING_WORKS, 14)})" if aim in one.idle else "")
        for aim in one.aims
    ]
    ax.set_xticks(range(len(names)), names, fontweight="bold")
    ax.xaxis.tick_top()
    ax.tick_params(length=0, labelsize=8)
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(False)


def _field(ax: Axes, x: int, y: int, shield: Shield) -> None:
    corner = (x - 0.48, y - 0.46)
    middle: dict[str, Any] = {"ha": "center", "va": "center"}
    if shield.kept is None:
        how = HIDDEN if shield.standing else HIDDEN | {"hatch": ""}
        ax.add_patch(Rectangle(corner, 0.96, 0.92, **how))
        ax.text(x, y, shield.number or "–", color=GREY, **middle)
        return
    row = shield.row
    colour = MAP(0.05 + 0.9 * shield.kept) if shield.coloured else "white"
    ax.add_patch(Rectangle(corner, 0.96, 0.92, facecolor=colour, linewidth=0))
    ink = "white" if shield.coloured and shield.kept > DARK else "black"
    low, high = np.clip([row["ep_low"] / row["ep_level"], row["ep_high"] / row["ep_level"]], 0, 1)
    ax.text(x, y - 0.16, shield.number, color=ink, fontweight="bold", **middle)
    told = f"{row['attack']} [{low:.2f}, {high:.2f}]"
    ax.text(x, y + 0.22, told, color=ink, fontsize=5.2, **middle)


def _fit(ax: Axes) -> None:
    """Has no text be wider than its field: the interval moves into a line of its own, then letters shrink."""
    left, right = ax.transData.transform([(0, 0), (FULL, 0)])[:, 0]
    for text in ax.texts:
        if text.get_window_extent().width > right - left:
            text.set(text=text.get_text().replace(" [", "\n["), va="bottom", linespacing=1.0)
            text.set_y(round(text.get_position()[1]) + FOOT)
        # Letters are drawn on whole pixels: they shrink in steps.
        while text.get_window_extent().width > right - left:
            text.set_fontsize(0.95 * float(text.get_fontsize()))
