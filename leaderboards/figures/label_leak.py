"""The figures of label privacy: leak over training, leak against utility, bars, principal components.

The leak is P³EFT's headline number: the largest success of spectral, norm and k-means attack on the
activations, over adapters, at the worst moment of training.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import style
from matplotlib.axes import Axes

from bench.contracts import LeakboardError, Projection, Record
from leaderboards.figures.labels import Label, place
from leaderboards.figures.legend import CHANCE
from leaderboards.figures.sheet import Sheet
from leaderboards.figures.tradeoff import RC, save, settle
from leaderboards.tables import (
    SETTING,
    STYLES,
    Curve,
    average,
    canonical,
    darker,
    interval,
    labelled,
    look,
    measured,
    settings,
    varying,
)

ATTACKS = ("spectral", "norm", "kmeans")
CHANNEL = "activations"
PANEL = 2.6
"""Inches, width of one panel."""
SIGNS = (("o", "○"), ("s", "□"), ("D", "◇"), ("^", "△"))
"""Of the models of printed points: marker and character."""
FLOOR: dict[str, Any] = {"color": "black", "linewidth": 0.9, "linestyle": ":"}
CLASSES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
"""Of labels in a scatter plot; after Okabe and Ito."""
DEFINED = (
    "Leak: the largest success of the spectral, norm and k-means attacks on activations, over adapters, at "
    "the worst moment of training. "
)


KINDS = ("training", "sensitivity", "bars", "pca")


def draw(
    kind: str,
    records: Sequence[Record],
    frame: pd.DataFrame,
    published: pd.DataFrame | None,
    out: Path,
    name: str,
) -> list[Path]:
    """Draws one kind of figure into the folder `out`; returns the files."""
    path = out / f"{name}-{kind}"
    if kind == "training":
        return training(records, path, f"{name}: label leak over training")
    if kind == "sensitivity":
        return sensitivity(leaks(frame), path, f"{name}: utility against label leak")
    if kind == "bars":
        return bars(leaks(frame), published, path, f"{name}: utility and label leak")
    shown = _records_by_setting([record for record in records if record.projections])
    if not shown:
        raise LeakboardError(
            "nothing to plot: nothing was sent at moments of training, or the records are older "
            "than these pictures"
        )
    files = []
    for (task, setting), seeds in shown.items():
        stem = "-".join([name, kind, task, *setting.replace(",", "").replace(" = ", "=").split()])
        files += components(seeds[0], out / stem, f"{task}: {setting}")
    return files


def leaks(frame: pd.DataFrame) -> pd.DataFrame:
    """Leak (`success`) and utility of every setting, as means over its seeds.

    Returns:
        As `leaderboards.tables.frontier.points` does, in order of appearance.

    Raises:
        LeakboardError: none of the three attacks has a result.
    """
    rows = frame[
        (frame["goal"] == "label")
        & frame["attack"].isin(ATTACKS)
        & (frame["channel"] == CHANNEL)
        & (frame["view"] == "worst")
        & (frame["status"] == "ok")
    ]
    if rows.empty:
        raise LeakboardError(
            f"nothing to plot: no record holds {', '.join(ATTACKS)} on {CHANNEL}; "
            "add them to `attacks` of the suite and run it again"
        )
    worst = rows.sort_values("success", ascending=False, kind="stable").drop_duplicates("key")
    return labelled(average(worst.sort_index(), SETTING))


def bars(points: pd.DataFrame, published: pd.DataFrame | None, out: Path, title: str) -> list[Path]:
    """Utility and leak of every setting as bars, a row of panels per task.

    Args:
        points: as `leaks` gives them.
        published: as `leaderboards.tables.published.published` builds it; drawn as hollow signs.
    """
    tasks = list(dict.fromkeys(points["task"]))
    widest = max(len(points[points["task"] == task]) for task in tasks)
    with style.context(["default", RC]):
        note = DEFINED + _measured(points) + " Dotted: the leak of permuted labels."
        known = [_comparable(published, task) for task in tasks] if published is not None else []
        if models := _signs(known):
            named = ", ".join(f"{model} ({SIGNS[i % 4][1]})" for i, model in enumerate(models))
            note += f" Hollow: as printed, for {named} and the paper's data sizes."
        width = 2 * max(PANEL, 0.5 * widest + 0.8)
        sheet = Sheet(width, 2.3 * len(tasks) + 0.3, title, note)
        panels = sheet.above.subplots(len(tasks), 2, squeeze=False)
        for row, task in zip(panels, tasks, strict=True):
            here = points[points["task"] == task]
            for ax, column in zip(row, ("utility", "success"), strict=True):
                _bars(ax, here, column)
                for theirs in known[tasks.index(task) :][:1]:
                    _printed(ax, here, theirs, column, models)
            row[0].set_title(task, loc="left", fontweight="bold")
            row[0].set_ylabel(f"{here['utility_metric'].iloc[0]} →")
            row[1].set_ylabel("← leak")
            x = np.arange(len(here))
            row[1].hlines(here["chance"].to_numpy(float), x - 0.42, x + 0.42, **FLOOR)
        return save(sheet.figure, out)


def sensitivity(points: pd.DataFrame, out: Path, title: str) -> list[Path]:
    """Utility (up) against leak (left is better), a line along the knob for each variant of a defense."""
    tasks = list(dict.fromkeys(points["task"]))
    curves = measured(points)
    with style.context(["default", RC]):
        note = DEFINED + _measured(points)
        entries = len({curve.name for curve in curves})
        width = max(4.2, 3.2 * len(tasks))
        sheet = Sheet(width, 3.1, title, note, entries)
        panels = sheet.above.subplots(1, len(tasks), squeeze=False)[0]
        for ax, task in zip(panels, tasks, strict=True):
            here = [curve for curve in curves if curve.task == task]
            for curve in here:
                _line(ax, curve)
            ax.set_xlabel("← leak")
            ax.set_ylabel(f"{here[0].rows['utility_metric'].iloc[0]} →")
            ax.set_title(task, loc="left", fontweight="bold")
        sheet.legend(panels[0])
        settle(sheet.figure)  # labels are placed in pixels
        for ax, task in zip(panels, tasks, strict=True):
            _name_points(ax, [curve for curve in curves if curve.task == task])
        return save(sheet.figure, out)


def training(records: Sequence[Record], out: Path, title: str) -> list[Path]:
    """Leak on activations and on gradients, and training loss, over the steps; means over seeds.

    Raises:
        LeakboardError: no record has a curve over training.
    """
    told = [record for record in records if any(leak.curve for leak in record.leaks)]
    if not told:
        raise LeakboardError(
            "nothing to plot: no record has a curve over training; label attacks draw it where a "
            "defense sends activations or gradients while it trains"
        )
    by_setting = _records_by_setting(told)
    tasks = list(dict.fromkeys(task for task, _ in by_setting))
    with style.context(["default", RC]):
        n = len({record.cell.seed for record in told})
        note = (
            "Leak at a moment: the largest success of the spectral, norm and k-means attacks there, over "
            f"adapters and servers; dotted: its level for permuted labels. Means over {n} "
            f"seed{'s' * (n > 1)}; bands are 95 % intervals."
        )
        entries = len({name for _, name in by_setting})
        sheet = Sheet(3 * PANEL, 2.3 * len(tasks) + 0.3, title, note, entries)
        panels = sheet.above.subplots(len(tasks), 3, squeeze=False)
        for row, task in zip(panels, tasks, strict=True):
            mine = [(n, seeds) for (t, n), seeds in by_setting.items() if t == task]
            drawn: dict[str, int] = {}
            for name, seeds in mine:
                defense = seeds[0].cell.defense.name
                stroke = look(defense).colour, STYLES[drawn.get(defense, 0) % len(STYLES)]
                drawn[defense] = drawn.get(defense, 0) + 1
                for ax, channel in zip(row[:2], (CHANNEL, "gradients"), strict=True):
                    _over(ax, [_curve(record, channel) for record in seeds], stroke, name)
                losses = [
                    list(zip(np.linspace(0, 1, len(r.loss)) * _last(r), r.loss, strict=True))
                    for r in seeds
                ]
                _over(row[2], losses, stroke, name)
            row[0].set_title(task, loc="left", fontweight="bold")
            for ax, what in zip(row, ("leak, activations", "leak, gradients", "loss"), strict=True):
                ax.set_ylabel(what)
                ax.set_xlabel("step")
            for ax, channel in zip(row[:2], (CHANNEL, "gradients"), strict=True):
                ax.set_ylim(0.45, 1.02)
                own = [record for _, seeds in mine for record in seeds]
                ax.axhline(_chance(own, channel), **CHANCE)
        sheet.legend(panels[0][0])
        return save(sheet.figure, out)


def components(record: Record, out: Path, title: str) -> list[Path]:
    """Principal components at moments of training, coloured by label: a row per channel and part."""
    found: dict[tuple[str, int, str], list[Projection]] = {}
    for one in record.projections:
        found.setdefault((one.channel.value, one.part, one.recipient), []).append(one)
    columns = max(map(len, found.values()))
    with style.context(["default", RC]):
        note = "First two principal components of what one server saw; colour is the label."
        sheet = Sheet(1.75 * columns + 0.5, 1.75 * len(found) + 0.3, title, note)
        panels = sheet.above.subplots(len(found), columns, squeeze=False)
        for row, ((channel, part, recipient), moments) in zip(panels, found.items(), strict=True):
            several = len({p for c, p, _ in found if c == channel}) > 1
            row[0].set_ylabel(f"{channel} {part + 1}" if several else channel)
            if len({r for *_, r in found}) > 1:
                row[0].set_ylabel(f"{row[0].get_ylabel()}\n{recipient}")
            for ax, one in zip(row, moments, strict=False):
                xy, truth = np.array(one.points), np.array(one.truth)
                colours = [CLASSES[label % len(CLASSES)] for label in truth]
                ax.scatter(*xy.T, s=5, c=colours, alpha=0.65, linewidths=0)
                ax.set(xticks=[], yticks=[])
                ax.set_title(f"step {one.step}", fontsize=7.5)
        return save(sheet.figure, out)


def _bars(ax: Axes, points: pd.DataFrame, column: str) -> None:
    x, heights = np.arange(len(points)), points[column].to_numpy(float)
    ends = points[[f"{column}_low", f"{column}_high"]].to_numpy(float).T
    colours = [look(str(name)).colour for name in points["defense"]]
    names = _settings(list(zip(points["defense"], points["params"], strict=True)))
    whiskers = {"elinewidth": 0.8, "capsize": 2}
    reach = abs(np.clip(ends, 0, 1) - heights)
    ax.bar(x, heights, 0.72, color=colours, alpha=0.85, yerr=reach, error_kw=whiskers)
    ax.set_xticks(x, [fill(name, 14) for name in names], fontsize=6.5)
    ax.grid(axis="x", visible=False)
    ax.set_ylim(max(0.0, float(np.nanmin(np.append(heights, 0.5))) - 0.1), 1.02)


def _comparable(published: pd.DataFrame, task: str) -> pd.DataFrame:
    known = published[(published["task"] == task) & (published["goal"] == "label")]
    return known.assign(success=1 - known["ep"])


def _signs(known: Sequence[pd.DataFrame]) -> list[str]:
    """The models of the printed points, in the order of their signs."""
    return list(dict.fromkeys(model for rows in known for model in rows["model"]))


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


def _name_points(ax: Axes, curves: Sequence[Curve]) -> None:
    """The value of the knob beside each point of a line, where there is room."""
    lines = [curve.rows[["success", "utility"]].to_numpy(float) for curve in curves]
    labels = [
        Label(x, y, text.rpartition("= ")[2], darker(curve.look.colour))
        for curve, line in zip(curves, lines, strict=True)
        for (x, y), text in zip(line, curve.rows["label"], strict=True)
        if len(line) > 1
    ]
    place(ax, labels, np.concatenate(lines), lines, 6.5)


def _over(
    ax: Axes, curves: Sequence[list[tuple[float, float]]], stroke: tuple[str, Any], name: str
) -> None:
    """The mean of the seeds' curves with its band; steps that some seed lacks are left out."""
    by_step: dict[float, list[float]] = {}
    for step, value in (point for curve in curves for point in curve):
        by_step.setdefault(step, []).append(value)
    whole = {step: np.array(v) for step, v in sorted(by_step.items()) if len(v) == len(curves)}
    if not whole:
        return
    steps, means = list(whole), [float(v.mean()) for v in whole.values()]
    bands = [interval(v, float(v[0]), float(v[0])) for v in whole.values()]
    colour, dashes = stroke
    ax.plot(steps, means, color=colour, linestyle=dashes, linewidth=1.2, label=name)
    ax.fill_between(steps, *np.array(bands).T, color=colour, alpha=0.15, linewidth=0)


def _curve(record: Record, channel: str) -> list[tuple[float, float]]:
    found: dict[float, float] = {}
    for leak in record.leaks:
        if leak.attack.name in ATTACKS and leak.channel == channel:
            for point in leak.curve:
                value = max(found.get(point.step, 0.0), point.success.value)
                found[point.step] = value
    return sorted(found.items())


def _chance(records: Sequence[Record], channel: str) -> float:
    """Mean over all moments of what the best of the attacks finds in permuted labels."""
    found: dict[tuple[str, float], float] = {}
    for record in records:
        for leak in record.leaks:
            if leak.attack.name in ATTACKS and leak.channel == channel:
                for point in leak.curve:
                    at = (record.key, float(point.step))
                    found[at] = max(found.get(at, 0.0), point.success.chance)
    return float(np.mean([*found.values()])) if found else 0.5


def _last(record: Record) -> int:
    return max(point.step for leak in record.leaks for point in leak.curve)


def _settings(methods: Sequence[tuple[str, str]]) -> list[str]:
    """Each defense with those of its parameters (JSON) that vary among `methods`, in words."""
    by_name: dict[str, list[str]] = {}
    for name, params in methods:
        by_name.setdefault(name, []).append(params)
    shown = {name: varying(map(json.loads, every)) for name, every in by_name.items()}
    words = [(name, settings(params, shown[name])) for name, params in methods]
    return [f"{name} {text}".strip() for name, text in words]


def _records_by_setting(records: Sequence[Record]) -> dict[tuple[str, str], list[Record]]:
    """(task, setting in words) → its records, one per seed."""
    methods = [(r.cell.defense.name, canonical(r.cell.defense.params)) for r in records]
    found: dict[tuple[str, str], list[Record]] = {}
    for record, setting in zip(records, _settings(methods), strict=True):
        found.setdefault((record.cell.task, setting), []).append(record)
    return found


def _measured(points: pd.DataFrame) -> str:
    limits = points["limit"].dropna().unique()
    data = f"at most {max(limits):,} examples per split" if len(limits) else "all examples"
    models = ", ".join(dict.fromkeys(points["model"]))
    few, many = int(points["n_seeds"].min()), int(points["n_seeds"].max())
    seeds = f"{many} seed{'s' * (many > 1)}" if few == many else f"{few} to {many} seeds"
    return f"Measured: {models}, {data}; {seeds}, 95 % intervals."
