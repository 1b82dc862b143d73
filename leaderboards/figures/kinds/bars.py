"""The figure of label privacy beside a paper's: utility and leak of every setting as bars."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from leakboard.leaderboards.figures.drawing import Asked
from leakboard.leaderboards.figures.label_leak import (
    DEFINED,
    caveats,
    leaks,
    named_settings,
    strongest_leaks,
)
from leakboard.leaderboards.figures.legend import GREY, HIDDEN
from leakboard.leaderboards.figures.notes import measured_on
from leakboard.leaderboards.figures.point_labels import BACKGROUND
from leakboard.leaderboards.figures.sheet import SMALL, Sheet, save, styled
from leakboard.leaderboards.tables import NOT_SHOWN, PROVEN, SETTING, RecordSet, style_of

PANEL = 2.6
"""Inches, least width of a panel."""
SIGNS = (("o", "○"), ("s", "□"), ("D", "◇"), ("^", "△"))
"""Of the models of printed points: marker and character."""
FLOOR: dict[str, Any] = {"color": "black", "linewidth": 0.9, "linestyle": ":"}
MOST: dict[str, Any] = {"color": "black", "linewidth": 1.4}


def plot(found: RecordSet, out: Path, asked: Asked) -> list[Path]:
    """Utility and label leak beside the paper's."""
    title = f"{found.name}: utility and label leak"
    return bars(found.frame(), found.printed, out / f"{found.name}-bars", title)


def bars(frame: pd.DataFrame, known: pd.DataFrame | None, out: Path, title: str) -> list[Path]:
    """Utility and leak of every setting as bars, a row of panels per task.

    Where no leak is shown, a hatched field stands for any; a line says what the strongest attack reads.

    Args:
        frame: as `leakboard.leaderboards.tables.frame.frame` builds it.
        known: what a paper prints, as `leakboard.leaderboards.tables.printed.printed` builds it; drawn as hollow signs.
    """
    points = leaks(frame)
    most = strongest_leaks(frame).set_index(SETTING)["success"]
    points = points.assign(most=most.reindex(pd.MultiIndex.from_frame(points[SETTING])).to_numpy())
    tasks = list(dict.fromkeys(points["task"]))
    widest = max(len(points[points["task"] == task]) for task in tasks)
    with styled():
        note = (
            f"Leak: {DEFINED} Line above: what the strongest of all attacks reads. Measured: "
            f"{measured_on(points)}, 95 % intervals. Dotted: the leak of permuted labels.{caveats(points)}"
        )
        theirs = {} if known is None else {task: _comparable(known, task) for task in tasks}
        # In the order of their signs.
        models = list(dict.fromkeys(model for rows in theirs.values() for model in rows["model"]))
        if models:
            named = ", ".join(f"{model} ({SIGNS[i % 4][1]})" for i, model in enumerate(models))
            note += f" Hollow: as printed, for {named} and the paper's data sizes."
        width = 2 * max(PANEL, 0.62 * widest + 0.8)
        sheet = Sheet(width, 2.3 * len(tasks) + 0.3, title, note)
        panels = sheet.above.subplots(len(tasks), 2, squeeze=False)
        for row, task in zip(panels, tasks, strict=True):
            here = points[points["task"] == task]
            for ax, column in zip(row, ("utility", "success"), strict=True):
                _bars(ax, here, column)
                if task in theirs:
                    _printed(ax, here, theirs[task], column, models)
            row[0].set_title(task, loc="left", fontweight="bold")
            row[0].set_ylabel(f"{here['utility_metric'].iloc[0]} →")
            row[1].set_ylabel("← leak")
            _standings(row[1], here["standing"].tolist())
            x = np.arange(len(here))
            for column, line in (("chance", FLOOR), ("most", MOST)):
                row[1].hlines(here[column].to_numpy(float), x - 0.42, x + 0.42, **line)
        return save(sheet.figure, out)


def _bars(ax: Axes, points: pd.DataFrame, column: str) -> None:
    x, heights = np.arange(len(points)), points[column].to_numpy(float)
    ends = points[[f"{column}_low", f"{column}_high"]].to_numpy(float).T
    colours = [style_of(str(name)).colour for name in points["defense"]]
    names = named_settings(list(zip(points["defense"], points["params"], strict=True)))
    whiskers = {"elinewidth": 0.8, "capsize": 2}
    reach = abs(np.clip(ends, 0, 1) - heights)
    ax.bar(x, heights, 0.72, color=colours, alpha=0.85, yerr=reach, error_kw=whiskers)
    ax.set_xticks(x, [_stacked(name) for name in names], fontsize=SMALL)
    ax.grid(axis="x", visible=False)
    seen = [0.5, *heights, *(points["chance"] if column == "success" else ())]
    ax.set_ylim(max(0.0, float(np.nanmin(seen)) - 0.1), 1.02)


def _stacked(name: str) -> str:
    """A name in lines that fit below a bar."""
    return fill(name.replace(" = ", "="), 11, break_long_words=False)


def _standings(ax: Axes, told: Sequence[str]) -> None:
    """A hatched field in the place of each leak that is not shown, and a sign in each that is a bound."""
    bottom, top = ax.get_ylim()
    middle: dict[str, Any] = {"ha": "center", "fontsize": SMALL}
    for x, how in enumerate(told):
        if how == NOT_SHOWN:
            ax.bar(x, top - bottom, 0.72, bottom, **HIDDEN)
            ax.text(
                x, (bottom + top) / 2, NOT_SHOWN, color=GREY, rotation=90, va="center", **middle
            )
        elif how == PROVEN:
            ax.text(x, bottom + 0.02, "≥", va="bottom", bbox=BACKGROUND, **middle)
    ax.set_ylim(bottom, top)


def _comparable(known: pd.DataFrame, task: str) -> pd.DataFrame:
    rows = known[(known["task"] == task) & (known["goal"] == "label")]
    return rows.assign(success=1 - rows["ep"])


def _printed(
    ax: Axes, points: pd.DataFrame, known: pd.DataFrame, column: str, models: list[str]
) -> None:
    """Draws the printed numbers over the bars of their defense."""
    for row in known.dropna(subset=[column]).to_dict("records"):
        at = [n for n, name in enumerate(points["defense"]) if name == row["defense"]]
        i = models.index(row["model"])
        marker = SIGNS[i % len(SIGNS)][0]
        # Side by side, so that models with equal numbers are all seen.
        x = [n + 0.16 * (i - (len(models) - 1) / 2) for n in at]
        ax.plot(x, [row[column]] * len(x), marker, mfc="white", mec="black", ms=4, mew=0.8)
