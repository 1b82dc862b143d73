"""The figure for a paper: utility against empirical privacy, one panel per task and attribute."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from leakboard.bench.contracts import Goal, LeakboardError, did_you_mean
from leakboard.leaderboards.figures.curves import Curve, measured_curves, printed_curves
from leakboard.leaderboards.figures.drawing import Asked
from leakboard.leaderboards.figures.legend import (
    BEFORE,
    CHANCE,
    ENVELOPE,
    GREY,
    LINE,
    UNDEFENDED,
    darker,
    keys,
    per_row,
    references,
    strokes,
)
from leakboard.leaderboards.figures.notes import AGAINST, note
from leakboard.leaderboards.figures.point_labels import Label, place
from leakboard.leaderboards.figures.sheet import SMALL, WIDTHS, save, styled
from leakboard.leaderboards.figures.sweep import sweep
from leakboard.leaderboards.tables import (
    NOT_SHOWN,
    PAPER,
    STRONGEST,
    RecordSet,
    distinct,
    pareto,
    points,
    swept,
)

FAR = 8
"""Paddings below the lowest curve within which the untuned model is drawn as a line."""
HEAD, PANEL = 0.3, 3.1
"""Inches of the title, and of a panel from its own title to the words below it."""
LEFT, RIGHT, TOP, BOTTOM = 0.64, 0.12, 0.24, 0.58
"""Inches around the axes of a panel, for the words beside them."""


def plot(found: RecordSet, out: Path, asked: Asked) -> list[Path]:
    """Utility against empirical privacy, or both against a parameter that was swept.

    Raises:
        LeakboardError: no such goal.
    """
    goal, attack, against = asked.goal, asked.attack, asked.against
    if goal not in list(Goal):
        raise LeakboardError(f"goal: unknown '{goal}'. {did_you_mean(str(goal), Goal)}")
    words = {STRONGEST: "the strongest attack", PAPER: "the paper's attack"}.get(attack, attack)
    name = "-".join([found.name, goal, *([] if attack == STRONGEST else [attack])])
    title = f"{found.name}: {goal} against {words}"
    more = found.suite.paper.note if found.suite and found.suite.paper else ""
    rows, known = found.frame(), found.printed
    if against is None:
        return tradeoff(points(rows, goal, attack), out / name, title, known, more)
    means = swept(rows, goal, against, attack)
    return sweep(means, against, out / f"{name}-by-{against}", title, known, more)


def tradeoff(
    points: pd.DataFrame,
    out: Path,
    title: str,
    known: pd.DataFrame | None = None,
    more: str = "",
    about: str = "",
) -> list[Path]:
    """Draws utility (up) against empirical privacy (right), a panel for each task and attribute.

    Args:
        points: as `leakboard.leaderboards.tables.points.points` builds them.
        out: where to write; .png (200 dpi), .svg and .pdf take the place of its suffix.
        title: above the panels.
        known: what a paper prints, as `leakboard.leaderboards.tables.printed.printed` builds it; drawn hollow and
            dashed in the panels of tasks that were measured too.
        more: what the reader must know of the printed points.
        about: model, data, training and seeds, where all points share them.

    Returns:
        The files. Equal points give equal bytes.

    Raises:
        LeakboardError: no point has both numbers.
    """
    drawn = _drawable(points)
    curves = measured_curves(drawn)
    theirs = printed_curves(_comparable(known, drawn)) if known is not None else []
    tasks = list(dict.fromkeys(drawn["task"]))
    with styled():
        columns = 2 if len(tasks) == 4 else min(len(tasks), 3)
        width, rows = WIDTHS[columns], -(-len(tasks) // columns)
        parts = [
            keys([*curves, *theirs]),
            references(bool(_undefended(drawn)), bool(_untuned(drawn))),
        ]
        models = distinct(pd.Series([m for c in theirs for m in c.rows["model"]], dtype="str"))
        text = wrap(note(points, models, more, about), int(width / 0.052))
        columns_of = [per_row(handles, width) for handles in parts]
        lines = [-(-len(handles) // n) for handles, n in zip(parts, columns_of, strict=True)]
        foot = LINE * (sum(lines) + 0.6 + 0.75 * len(text))
        height = PANEL * rows + HEAD + foot
        figure = Figure(figsize=(width, height))
        panels = [_place(figure, n, columns) for n in range(len(tasks))]
        here = [[c for c in [*curves, *theirs] if c.task == task] for task in tasks]
        for ax, task, inside in zip(panels, tasks, here, strict=True):
            _panel(ax, drawn[drawn["task"] == task], inside)
        figure.suptitle(title, fontsize=10, fontweight="bold", y=1 - 0.08 / height)
        for handles, n, above in zip(parts, columns_of, (0, lines[0]), strict=True):
            top = (0.5, (foot - LINE * above) / height)
            figure.legend(handles=handles, loc="upper center", bbox_to_anchor=top, ncols=n)
        text_at = 0.03 * foot / height
        told: dict[str, Any] = {"fontsize": SMALL, "color": GREY, "ha": "center", "va": "bottom"}
        figure.text(0.5, text_at, "\n".join(text), **told)
        for ax, task, inside in zip(panels, tasks, here, strict=True):
            _name_points(ax, drawn[drawn["task"] == task], inside)
        return save(figure, out)


def _place(figure: Figure, n: int, columns: int) -> Axes:
    """Axes of the n-th panel; to have them and their words arranged would be to draw them once more."""
    width, height = figure.get_size_inches()
    wide, high = width / columns - LEFT - RIGHT, PANEL - TOP - BOTTOM
    row, column = divmod(n, columns)
    x, y = column * width / columns + LEFT, height - HEAD - PANEL * (row + 1) + BOTTOM
    ax = figure.add_axes((x / width, y / height, wide / width, high / height))
    # So few that their numbers are short enough for the room they have.
    ax.yaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
    ax.xaxis.set_label_coords(0.5, -0.23 / high)
    ax.yaxis.set_label_coords(-0.43 / wide, 0.5)
    return ax


def _drawable(points: pd.DataFrame) -> pd.DataFrame:
    if points.empty:
        raise LeakboardError(
            "nothing to plot: no attack of this goal has an ok result; "
            "'leakboard show' lists what failed or was skipped, and why"
        )
    if (points["standing"] == NOT_SHOWN).all():
        raise LeakboardError(
            "nothing to plot: none of the points is shown, since no attack of this goal finds anything or "
            "is certified; 'leakboard show' lists what each found"
        )
    drawn = points.dropna(subset=["utility", "ep"])
    if drawn.empty:
        raise LeakboardError(
            f"nothing to plot: none of the {len(points)} points has a utility beside its EP; "
            "'leakboard show' lists what failed, and why"
        )
    # An attribute has a chance level of its own, and so a panel.
    named = drawn["task"] + ": " + drawn["attribute"]
    return drawn.assign(task=drawn["task"].where(drawn["attribute"] == "", named))


def _comparable(known: pd.DataFrame, drawn: pd.DataFrame) -> pd.DataFrame:
    """The printed points of the goal and the tasks that are drawn."""
    return known[known["goal"].isin(drawn["goal"]) & known["task"].isin(drawn["task"])]


def _panel(ax: Axes, points: pd.DataFrame, curves: Sequence[Curve]) -> None:
    for utility in _undefended(points):
        ax.axhline(utility, **UNDEFENDED, zorder=1)
    low, high = _chance(points)
    ax.axvspan(low, high, color=GREY, alpha=0.12, linewidth=0, zorder=0)
    ax.axvline((low + high) / 2, **CHANCE, zorder=1)
    ax.plot(*_staircase(points).T, **ENVELOPE, zorder=1)
    for curve in curves:
        _draw(ax, curve)
    heights = np.concatenate([c.rows["utility"].to_numpy(float) for c in curves])
    pad = max(0.16 * float(np.ptp(heights)), 0.02)
    heights = np.concatenate([heights, _before(ax, points, heights.min() - FAR * pad)])
    # Interval ends may run off the panel: with few seeds they would squeeze the points flat.
    ax.set(xlim=(-0.04, 1.04), ylim=(heights.min() - pad, heights.max() + pad))
    goal = str(points["goal"].iloc[0])
    against, metric = AGAINST.get(goal, goal), distinct(points["metric"])
    ax.set_xlabel(f"Empirical privacy against {against} →\n1 − {metric or 'success'}")
    ax.set_ylabel(f"Utility: {distinct(points['utility_metric'])} →")
    ax.set_title(str(points["task"].iloc[0]), loc="left", fontweight="bold")
    ax.set_title("better ↗", loc="right", color=GREY, fontsize=7.5)


def _before(ax: Axes, points: pd.DataFrame, least: float) -> list[float]:
    """Draws the utility of the untuned model; what would press the curves flat is told at the foot."""
    shown = [level for level in _untuned(points) if level >= least]
    for level in shown:
        ax.axhline(level, **BEFORE, zorder=1)
    if below := [f"{level:.3f}" for level in _untuned(points) if level < least]:
        words = f"untuned model: {', '.join(below)} ↓"
        place: dict[str, Any] = {"ha": "left", "va": "bottom", "transform": ax.transAxes}
        ax.text(0.01, 0.01, words, color=GREY, fontsize=SMALL, **place)
    return shown


def _draw(ax: Axes, curve: Curve) -> None:
    rows, look = curve.rows, curve.look
    x, y = rows["ep"].to_numpy(float), rows["utility"].to_numpy(float)
    if not curve.hollow:
        ends = rows[["ep_low", "ep_high", "utility_low", "utility_high"]].to_numpy(float).T
        alone = len(rows) == 1
        if not alone:
            order = np.argsort(x, kind="stable")
            low, high = ends[2:, order]
            ax.fill_between(x[order], low, high, color=look.colour, alpha=0.13, linewidth=0)
        ax.errorbar(
            x,
            y,
            xerr=np.nan_to_num(np.abs(ends[:2] - x)),
            yerr=np.nan_to_num(np.abs(ends[2:] - y)) if alone else None,
            fmt="none",
            ecolor=look.colour,
            elinewidth=0.8,
            alpha=0.45,
            zorder=2,
        )
    ax.plot(x, y, **strokes(curve), zorder=3)


def _name_points(ax: Axes, points: pd.DataFrame, curves: Sequence[Curve]) -> None:
    labels = []
    for curve in curves:
        last, safest = len(curve.rows) - 1, curve.rows["ep"].max()
        for position, row in enumerate(curve.rows[["label", "ep", "utility"]].itertuples()):
            text = str(row.label)
            value = ("≤ " if text.startswith("≤ ") else "") + text.rpartition("= ")[2]
            end = position in (0, last)
            labels.append(
                Label(
                    float(row.ep),  # type: ignore[arg-type]
                    float(row.utility),  # type: ignore[arg-type]
                    # The ends say what the knob is; between them its value is enough.
                    text if end else value,
                    darker(curve.look.colour),
                    short=value,
                    required=row.ep == safest and not curve.hollow,
                )
            )
    lines = [c.rows[["ep", "utility"]].to_numpy(float) for c in curves]
    markers = np.concatenate(lines)
    left, right = ax.get_xlim()
    bottom, top = ax.get_ylim()
    for utility in [*_undefended(points), *_untuned(points)]:
        lines.append(np.array([[left, utility], [right, utility]]))
    lines += [np.array([[x, bottom], [x, top]]) for x in _chance(points)]
    place(ax, labels, markers, lines, SMALL)


def _undefended(points: pd.DataFrame) -> list[float]:
    """Utilities without a defense: one for each model and setup."""
    return list(points.loc[points["defense"] == "none", "utility"])


def _untuned(points: pd.DataFrame) -> list[float]:
    """Utilities of the model before any tuning: one for each model and setup."""
    return sorted(points["untuned"].dropna().unique().tolist()) if "untuned" in points else []


def _chance(points: pd.DataFrame) -> tuple[float, float]:
    """The range of EP that guessing without any observation reaches."""
    return float(points["ep_chance"].min()), float(points["ep_chance"].max())


def _staircase(points: pd.DataFrame) -> np.ndarray:
    """Corners of the Pareto envelope: the most utility that is left at each EP."""
    best = pareto(points).sort_values(["ep", "utility"], ascending=[True, False])
    xy = best[["ep", "utility"]].to_numpy(float)
    if not len(xy):
        return np.empty((0, 2))
    # To the right of a point only the next one's utility is left.
    steps = [[[a[0], b[1]], b] for a, b in pairwise(xy)]
    return np.array([xy[0], *[corner for step in steps for corner in step]])
