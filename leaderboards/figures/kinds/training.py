"""The figure of label privacy over time: leaks and loss along the steps of training."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from leakboard.bench.contracts import LeakboardError, Point, Record
from leakboard.leaderboards.figures.curves import STYLES
from leakboard.leaderboards.figures.drawing import Asked
from leakboard.leaderboards.figures.label_leak import ATTACKS, CHANNEL, at_worst, records_by_setting
from leakboard.leaderboards.figures.legend import CHANCE, GREY
from leakboard.leaderboards.figures.sheet import SMALL, Sheet, save, styled
from leakboard.leaderboards.tables import NOT_SHOWN, RecordSet, count, frame, interval, style_of

CHANNELS = (CHANNEL, "gradients")
PANEL = 2.6
"""Inches, width of one panel."""


def plot(found: RecordSet, out: Path, asked: Asked) -> list[Path]:
    """Leak of labels over the steps of training."""
    title = f"{found.name}: label leak over training"
    return training(found.records, out / f"{found.name}-training", title)


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
    by_setting = records_by_setting(told)
    rows = frame(records)
    tried = {channel: at_worst(rows, channel) for channel in CHANNELS}
    tasks = list(dict.fromkeys(task for task, _ in by_setting))
    with styled():
        seeds = count(len({record.cell.seed for record in told}), "seed")
        note = (
            "Leak at a moment: the largest success there of those of the spectral, norm and k-means attacks that "
            "are certified or find something, over adapters and servers; not shown where none of them is or does. "
            f"Dotted: its level for permuted labels. Means over {seeds}; bands are 95 % intervals."
        )
        entries = len({name for _, name in by_setting})
        sheet = Sheet(3 * PANEL, 2.3 * len(tasks) + 0.3, title, note, entries)
        panels = sheet.above.subplots(len(tasks), 3, squeeze=False)
        for row, task in zip(panels, tasks, strict=True):
            _draw(row, {name: own for (at, name), own in by_setting.items() if at == task}, tried)
            row[0].set_title(task, loc="left", fontweight="bold")
        sheet.legend(panels[0][0])
        return save(sheet.figure, out)


def _draw(
    axes: Sequence[Axes],
    settings: Mapping[str, Sequence[Record]],
    tried: Mapping[str, pd.DataFrame],
) -> None:
    """The leaks and the loss of one task, a line for each setting, or its name where none is shown."""
    drawn: dict[str, int] = {}
    hidden: dict[str, list[str]] = {channel: [] for channel in CHANNELS}
    for name, seeds in settings.items():
        defense = seeds[0].cell.defense.name
        stroke = style_of(defense).colour, STYLES[drawn.get(defense, 0) % len(STYLES)]
        drawn[defense] = drawn.get(defense, 0) + 1
        for ax, channel in zip(axes[:2], CHANNELS, strict=True):
            working = _working(tried[channel], seeds)
            if working:
                _over(ax, [_curve(record, channel, working) for record in seeds], stroke, 1.0)
            elif any(_curve(record, channel, ATTACKS) for record in seeds):
                hidden[channel].append(name)
        losses = [
            list(zip(np.linspace(0, 1, len(one.loss)) * _last(one), one.loss, strict=True))
            for one in seeds
        ]
        _over(axes[2], losses, stroke, np.inf)
        # The legend is of the first panel, and a setting may stand in another alone.
        axes[0].plot([], [], color=stroke[0], linestyle=stroke[1], linewidth=1.2, label=name)
    every = [record for seeds in settings.values() for record in seeds]
    for ax, channel in zip(axes[:2], CHANNELS, strict=True):
        ax.set_ylabel(f"leak, {channel}")
        chance = _chance(every, channel)
        ax.set_ylim(min(0.45, chance - 0.05), 1.02)
        ax.axhline(chance, **CHANCE)
        if hidden[channel]:
            words = fill(f"{NOT_SHOWN}: {', '.join(hidden[channel])}", 32)
            place: dict[str, Any] = {"ha": "right", "va": "top", "transform": ax.transAxes}
            ax.text(0.98, 0.98, words, color=GREY, fontsize=SMALL, **place)
    axes[2].set_ylabel("loss")
    for ax in axes:
        ax.set_xlabel("step")


def _working(tried: pd.DataFrame, seeds: Sequence[Record]) -> set[str]:
    """The attacks that are certified on this setting, or find something."""
    own = tried[tried["key"].isin({record.key for record in seeds})]
    return set(own["attack"][own["counts"]])


def _over(
    ax: Axes,
    curves: Sequence[list[tuple[float, float]]],
    stroke: tuple[str, Any],
    most: float,
) -> None:
    """The mean of the seeds' curves with its band; steps that some seed lacks are left out.

    Args:
        most: the largest value that there is; the least is 0.
    """
    by_step: dict[float, list[float]] = {}
    for step, value in (point for curve in curves for point in curve):
        by_step.setdefault(step, []).append(value)
    whole = {step: np.array(v) for step, v in sorted(by_step.items()) if len(v) == len(curves)}
    if not whole:
        return
    steps, means = list(whole), [float(v.mean()) for v in whole.values()]
    # Student's t knows no bounds; what is measured has some.
    bands = np.clip([interval(v, float(v[0]), float(v[0])) for v in whole.values()], 0, most)
    colour, dashes = stroke
    ax.plot(steps, means, color=colour, linestyle=dashes, linewidth=1.2)
    ax.fill_between(steps, *bands.T, color=colour, alpha=0.15, linewidth=0)


def _moments(record: Record, channel: str, attacks: Collection[str]) -> Iterator[Point]:
    """What each of the attacks found at each moment of training."""
    for leak in record.leaks:
        if leak.attack.name in attacks and leak.channel == channel:
            yield from leak.curve


def _curve(record: Record, channel: str, attacks: Collection[str]) -> list[tuple[float, float]]:
    """The leak at each step."""
    found: dict[float, float] = {}
    for one in _moments(record, channel, attacks):
        found[one.step] = max(found.get(one.step, 0.0), one.success.value)
    return sorted(found.items())


def _chance(records: Sequence[Record], channel: str) -> float:
    """Mean over all moments of what the best of the attacks finds in permuted labels."""
    found: dict[tuple[str, float], float] = {}
    for record in records:
        for one in _moments(record, channel, ATTACKS):
            at = (record.key, one.step)
            found[at] = max(found.get(at, 0.0), one.success.chance)
    return float(np.mean([*found.values()])) if found else 0.5


def _last(record: Record) -> int:
    return max(one.step for leak in record.leaks for one in leak.curve)
