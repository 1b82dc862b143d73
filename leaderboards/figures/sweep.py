"""The figure of one swept parameter: what leaks, and what it costs, against the cut or any other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator
from matplotlib.transforms import ScaledTranslation

from leakboard.bench.contracts import LeakboardError
from leakboard.leaderboards.figures.legend import CHANCE, GREY, LINE, drawn, per_row
from leakboard.leaderboards.figures.notes import AGAINST, note
from leakboard.leaderboards.figures.sheet import SMALL, WIDTHS, save, styled
from leakboard.leaderboards.tables import (
    NOT_SHOWN,
    OF_CELL,
    distinct,
    format_parameter,
    printed_sweep,
    style_of,
)

AXES = {
    "cut": "Blocks below the cut, k",
    "labelled": "Labelled share",
    "limit": "Examples per split",
    "epochs": "Epochs",
    "sentences": "Public texts to learn from",
}
OPEN = "#222222"
"""The line without protection."""
LOG_FROM = 20
"""Ratio of the ends from which an axis is logarithmic."""
BESIDE = 2.5
"""Points between the marks of two lines at one value."""
HEIGHT = 2.3
"""Inches of a row of panels."""


@dataclass(frozen=True)
class Panel:
    """One axis: a measured quantity of the lines of one task, attribute and source."""

    title: str
    quantity: Literal["ep", "success", "utility"]
    rows: pd.DataFrame
    hollow: bool
    """Printed in a paper, not measured here."""


def sweep(
    means: pd.DataFrame,
    against: str,
    out: Path,
    title: str,
    printed: pd.DataFrame | None = None,
    more: str = "",
) -> list[Path]:
    """Draws the lines of `swept`.

    Against a parameter of the cell or the defense: EP and utility beside each other, a row for each
    task and attribute, and below it one for each printed sweep of the task. Against a parameter of
    attacks, on which utility does not depend: the success, one panel for each task and attribute.

    Args:
        means: as `swept` builds them, for `against`.
        out: where to write; .png, .svg and .pdf take the place of its suffix.
        printed: what a paper prints, as `leakboard.leaderboards.tables.printed.printed` builds it.
        more: what else differs between its numbers and ours.

    Returns:
        The files. Equal means give equal bytes.
    """
    if (means["standing"] == NOT_SHOWN).all():
        raise LeakboardError(
            "nothing to plot: none of the points is shown, since no attack of this goal finds anything or "
            "is certified; 'leakboard show' lists what each found"
        )
    known = printed_sweep(printed, against, means)
    panels = _panels(means, known, against)
    paired = any(panel.quantity == "utility" for panel in panels)
    columns = 2 if paired else min(len(panels), 3)
    rows, width = -(-len(panels) // columns), WIDTHS[columns]
    colours = _colours(pd.concat([means, known]))
    handles = _legend(pd.concat([means, known]), colours)
    beside = per_row(handles, width)
    text = wrap(note(means, distinct(known["model"]), more), int(width / 0.052))
    foot = LINE * (-(-len(handles) // beside) + 0.6 + 0.75 * len(text))
    body = HEIGHT * rows + 0.3
    with styled():
        figure = Figure(figsize=(width, body + foot), layout="constrained")
        above, below = np.ravel(np.asarray(figure.subfigures(2, 1, height_ratios=[body, foot])))
        axes = above.subplots(rows, columns, squeeze=False, sharey="col" if paired else False)
        for ax in axes.flatten()[len(panels) :]:
            ax.set_axis_off()
        for ax, panel in zip(axes.flatten(), panels, strict=False):
            _draw(ax, panel, colours, against)
        above.suptitle(title, fontsize=10, fontweight="bold")
        below.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 1), ncols=beside)
        below.text(0.5, 0.03, "\n".join(text), fontsize=SMALL, color=GREY, ha="center", va="bottom")
        return save(figure, out)


def _panels(means: pd.DataFrame, known: pd.DataFrame, against: str) -> list[Panel]:
    of_attack = (
        all(against not in json.loads(p) for p in means["params"]) and against not in OF_CELL
    )
    quantities: tuple[Literal["ep", "success", "utility"], ...] = ("ep", "utility")
    if of_attack:
        quantities = ("success",)
    panels = []
    for (task, attribute), rows in means.groupby(["task", "attribute"], sort=False):
        name = f"{task}: {attribute}" if attribute else str(task)
        models = distinct(rows["model"])
        first = name if of_attack else f"{name} · {models}, measured here"
        panels += [Panel(first, quantity, rows, False) for quantity in quantities]
        theirs = known[known["task"] == task] if not attribute and not of_attack else known[:0]
        for source, own in theirs.groupby("source", sort=False):
            panels += [Panel(f"{name} · {source}", q, own, True) for q in quantities]
    return panels


def _draw(ax: Axes, panel: Panel, colours: Mapping[Any, Any], against: str) -> None:
    rows, quantity = panel.rows, panel.quantity
    ticks = _ordered(rows["x"])
    numeric = all(isinstance(x, int | float) and not isinstance(x, bool) for x in ticks)
    place = {json.dumps(x): (x if numeric else i) for i, x in enumerate(ticks)}
    if numeric and min(ticks) > 0 and max(ticks) >= LOG_FROM * min(ticks):
        ax.set_xscale("log")
        ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticks(list(place.values()), [_tick(x) for x in ticks])
    if not panel.hollow:
        # What is scored may differ along the axis, and with it what guessing reaches.
        levels = _chances(rows, quantity)
        ax.plot([place[x] for x in levels.index], levels.to_numpy(), **CHANCE, zorder=1)
    lines = [line for _, line in rows.groupby("line", sort=False)]
    for i, line in enumerate(lines):
        first = line.iloc[0]
        # Equal results stand beside each other, or only the last would be seen.
        right = 0 if panel.hollow else (i - (len(lines) - 1) / 2) * BESIDE / 72
        shifted = ax.transData + ScaledTranslation(right, 0, ax.figure.dpi_scale_trans)
        at = np.array([place[json.dumps(x)] for x in line["x"]], float)
        order = np.argsort(at, kind="stable")
        at, y = at[order], line[quantity].to_numpy(float)[order]
        strokes = _strokes(first, colours, panel.hollow)
        if not panel.hollow:
            ends = line[[f"{quantity}_low", f"{quantity}_high"]].to_numpy(float)[order].T
            ax.errorbar(
                at,
                y,
                yerr=np.nan_to_num(np.abs(ends - y)),
                fmt="none",
                ecolor=strokes["color"],
                elinewidth=0.8,
                alpha=0.45,
                transform=shifted,
                zorder=2,
            )
        ax.plot(at, y, **strokes, transform=shifted, zorder=3)
        # An axis does not know by itself what is drawn with a transform of its own.
        ax.update_datalim(np.column_stack([at, y])[~np.isnan(y)])
    ax.autoscale_view()
    ax.set_xlabel(AXES.get(against, format_parameter(against, "").rstrip(" =") or against))
    _scale_y(ax, panel)
    ax.set_title(panel.title, loc="left", fontweight="bold", fontsize=7.5)


def _tick(x: Any) -> str:
    return "none" if x is None else f"{x:g}" if isinstance(x, float) else str(x)


def _scale_y(ax: Axes, panel: Panel) -> None:
    rows, quantity = panel.rows, panel.quantity
    if quantity == "ep":
        goal = str(rows["goal"].iloc[0])
        ax.set_ylabel(f"Empirical privacy against\n{AGAINST.get(goal, goal)} →")
        ax.set_ylim(-0.03, 1.03)
    elif quantity == "success":
        ax.set_ylabel(f"Success: {distinct(rows['metric'])}")
        shown = rows.loc[rows["success"].notna(), ["success", "success_low", "success_high"]]
        ax.set_ylim(*_room([*shown.to_numpy(float).ravel(), *_chances(rows, "success")]))
    else:
        metric = distinct(rows["utility_metric"]) if "utility_metric" in rows else ""
        ax.set_ylabel(f"Utility: {metric or 'accuracy'} →")


def _room(values: Sequence[float]) -> tuple[float, float]:
    known = [value for value in values if not np.isnan(value)]
    low, high = min(known), max(known)
    pad = max(0.1 * (high - low), 0.02)
    return low - pad, high + pad


def _chances(rows: pd.DataFrame, quantity: str) -> pd.Series:
    """The level of guessing without an observation at each value of the parameter, as JSON."""
    name = {"utility": "utility_chance", "ep": "ep_chance"}.get(quantity, "chance")
    levels = rows.groupby(rows["x"].map(json.dumps), sort=False)[name].mean().dropna()
    return levels.loc[[x for x in map(json.dumps, _ordered(rows["x"])) if x in levels]]


def _ordered(values: pd.Series) -> list[Any]:
    """The different values: numbers in order, then words, then none."""
    different = {json.dumps(x): x for x in values}.values()
    numbers = sorted(x for x in different if isinstance(x, int | float))
    words = sorted(x for x in different if isinstance(x, str))
    return [*numbers, *words, *([None] if None in different else [])]


def _colours(rows: pd.DataFrame) -> dict[Any, Any]:
    """A colour for each value, from a small number, of much protection, to none."""
    values = _ordered(rows["value"])
    numbers = [v for v in values if v is not None and not isinstance(v, str)]
    shades = colormaps["viridis"](np.linspace(0.0, 0.88, max(len(numbers), 1)))
    own = {v: v for v in values if isinstance(v, str)}
    return dict(zip(numbers, shades, strict=False)) | own | {None: OPEN}


def _strokes(row: Any, colours: Mapping[Any, Any], hollow: bool) -> dict[str, Any]:
    """Line and marker; the value decides the colour, the defense the marker."""
    strokes = drawn(style_of(str(row["defense"])).marker, colours[row["value"]], hollow)
    return strokes | {"linestyle": (0, (4, 2.5)) if hollow else "-"}


def _legend(rows: pd.DataFrame, colours: Mapping[Any, Any]) -> list[Line2D]:
    order = _ordered(rows["value"])
    firsts = rows.drop_duplicates("line")
    ranked = sorted(firsts.to_dict("records"), key=lambda row: order.index(row["value"]))
    lines = [Line2D([], [], **_strokes(r, colours, False), label=r["line"]) for r in ranked]
    return [*lines, Line2D([], [], **CHANCE, label="chance level")]
