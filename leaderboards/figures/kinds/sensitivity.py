"""The figure of label privacy along the knob: utility against leak, a line for each variant."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from leakboard.leaderboards.figures.curves import Curve, measured_curves
from leakboard.leaderboards.figures.drawing import Asked
from leakboard.leaderboards.figures.label_leak import (
    DEFINED,
    ON_ACTIVATIONS,
    caveats,
    leaks,
    strongest_leaks,
)
from leakboard.leaderboards.figures.legend import GREY, darker
from leakboard.leaderboards.figures.notes import measured_on
from leakboard.leaderboards.figures.point_labels import Label, place
from leakboard.leaderboards.figures.sheet import SMALL, Sheet, save, settle, styled
from leakboard.leaderboards.tables import NOT_SHOWN, RecordSet

PANEL = 3.2
"""Inches, width of one panel."""


def plot(found: RecordSet, out: Path, asked: Asked) -> list[Path]:
    """Utility against label leak along each defense's parameter."""
    title = f"{found.name}: utility against label leak"
    return sensitivity(found.frame(), out / f"{found.name}-sensitivity", title)


def sensitivity(frame: pd.DataFrame, out: Path, title: str) -> list[Path]:
    """Utility (up) against leak (left is better), a line along the knob for each variant of a defense.

    A row of panels per task, since what P³EFT's authors measure is not all that can be read: their attacks,
    any on activations, any at all. A point whose leak is not shown is a grey line through all that it could be.
    """
    measured = {
        "their attacks": leaks(frame),
        "any attack on activations": strongest_leaks(frame, ON_ACTIVATIONS),
        "any attack": strongest_leaks(frame),
    }
    points, hidden = measured["any attack"], caveats(pd.concat(measured.values()))
    tasks = list(dict.fromkeys(points["task"]))
    curves = {by: measured_curves(own) for by, own in measured.items()}
    with styled():
        note = (
            f"Their attacks, as P³EFT's authors measure: {DEFINED} Any attack: the strongest of a setting, on "
            f"the mean over its seeds. Measured: {measured_on(points)}, 95 % intervals.{hidden}"
        )
        entries = len({curve.name for own in curves.values() for curve in own})
        sheet = Sheet(3 * PANEL, 2.5 * len(tasks) + 0.4, title, note, entries)
        grid = sheet.above.subplots(
            len(tasks), len(measured), squeeze=False, sharex=True, sharey="row"
        )
        drawn = {
            (task, by): (ax, [curve for curve in curves[by] if curve.task == task])
            for task, row in zip(tasks, grid, strict=True)
            for by, ax in zip(measured, row, strict=True)
        }
        for (task, by), (ax, here) in drawn.items():
            for curve in here:
                _line(ax, curve)
                _hidden(ax, curve)
            ax.set_xlabel("← leak")
            ax.set_title(f"{task}, {by}", loc="left", fontweight="bold")
        for row, task in zip(grid, tasks, strict=True):
            metric = points.loc[points["task"] == task, "utility_metric"].iloc[0]
            row[0].set_ylabel(f"{metric} →")
        sheet.legend(grid[0][-1])
        settle(sheet.figure)  # labels are placed in pixels
        for ax, here in drawn.values():
            _name_points(ax, here)
        return save(sheet.figure, out)


def _line(ax: Axes, curve: Curve) -> None:
    rows, ends = curve.rows, ("success_low", "success_high", "utility_low", "utility_high")
    x, y = rows["success"].to_numpy(float), rows["utility"].to_numpy(float)
    low, high, bottom, top = (np.clip(rows[name].to_numpy(float), 0, 1) for name in ends)
    ax.errorbar(
        x,
        y,
        xerr=np.nan_to_num([x - low, high - x]).clip(0),
        yerr=np.nan_to_num([y - bottom, top - y]).clip(0),
        color=curve.look.colour,
        marker=curve.look.marker,
        markersize=5,
        linewidth=1.1,
        linestyle=curve.style,
        elinewidth=0.6,
        label=curve.name,
    )


def _hidden(ax: Axes, curve: Curve) -> None:
    rows = curve.rows[curve.rows["standing"] == NOT_SHOWN]
    place: dict[str, Any] = {"ha": "right", "va": "bottom", "fontsize": SMALL}
    for row in rows[["utility", "knob", "label"]].to_dict("records"):
        ax.axhline(row["utility"], color=GREY, linewidth=0.8, linestyle=":", zorder=1)
        setting = f"{curve.name}, {row['label']}" if row["knob"] else curve.name
        words = f"{setting}: {NOT_SHOWN}"
        ax.text(1, row["utility"], words, color=GREY, transform=ax.get_yaxis_transform(), **place)


def _name_points(ax: Axes, curves: Sequence[Curve]) -> None:
    """The value of the knob beside each point of a line, where there is room."""
    seen = [curve.rows.dropna(subset=["success", "utility"]) for curve in curves]
    lines = [rows[["success", "utility"]].to_numpy(float) for rows in seen]
    labels = [
        Label(x, y, _value(text), darker(curve.look.colour))
        for curve, rows, line in zip(curves, seen, lines, strict=True)
        for (x, y), text in zip(line, rows["label"], strict=True)
        if len(curve.rows) > 1
    ]
    place(ax, labels, np.concatenate(lines), lines, SMALL)


def _value(label: str) -> str:
    """That of the knob alone, with the sign of a bound."""
    return ("≥ " if label.startswith("≥ ") else "") + label.rpartition("= ")[2]
