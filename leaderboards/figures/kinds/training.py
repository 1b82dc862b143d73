"""Label privacy over time: success of attacks and loss along the steps of training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from statistics import fmean

import numpy as np

from leakboard.bench.contracts import Goal, LeakboardError, Record, grouped
from leakboard.leaderboards.figures.drawing import Request
from leakboard.leaderboards.figures.series import Place, measured_words
from leakboard.leaderboards.rendering import LINES, Axis, Panel, Plot, Point, Reference, Series
from leakboard.leaderboards.tables import (
    BY_AUTHORS,
    Interval,
    RecordSet,
    Setting,
    mean_interval,
    style_of,
)

CHANNELS = ("activations", "gradients")


def plots(found: RecordSet, request: Request) -> Iterator[tuple[str, Plot]]:
    """Three panels for each task and model: success of P³EFT's attacks on activations and on gradients, and the loss.

    A line for each setting has means over seeds with 95 % bands.

    Raises:
        LeakboardError: no record has a curve over training.
    """
    table = found.table
    settings = [one for one in table.settings if any(leak.curve for leak in one.leaks)]
    if not settings:
        raise LeakboardError(
            "nothing to plot: no record has a curve over training; label attacks draw it where a "
            "defense sends activations or gradients while it trains"
        )
    places = grouped(settings, lambda one: Place(one.task, one.model))
    panels = [panel for place, own in places.items() for panel in _panels(place.title, own)]
    chosen = set(map(id, settings))
    labels = [r for r in table.select(goal=Goal.LABEL) if id(r.setting) in chosen]
    caption = (
        "Success at a moment: the largest of the spectral, norm and k-means attacks, over adapters and servers. "
        f"{measured_words(labels) if labels else ''}"
    )
    yield "training", Plot("Leak of labels during training", panels, caption.strip(), columns=3)


def _panels(title: str, settings: Sequence[Setting]) -> Iterator[Panel]:
    variants = grouped(settings, lambda one: one.defense)
    line_of = {id(one): LINES[n % len(LINES)] for v in variants.values() for n, one in enumerate(v)}

    def panel(
        what: str,
        y: Axis,
        curve: Callable[[Record], Mapping[float, float]],
        most: float,
        references: Sequence[Reference] = (),
    ) -> Panel:
        series = [
            Series(
                one.name,
                _means([curve(record) for record in one.records.values()], most),
                style_of(one.defense).colour,
                "",
                line_of[id(one)],
                band=True,
                group=one.defense,
            )
            for one in settings
        ]
        words = f"{title}\n{what}"
        return Panel(words, Axis("step"), y, series, references, height=2.3, weight=0.72)

    records = [record for one in settings for record in one.records.values()]
    for channel in CHANNELS:
        chances = [x for r in records for x in _largest(r, channel, of_chance=True).values()]
        chance = float(np.mean(chances)) if chances else 0.5
        y = Axis("success of attacks", min(0.45, chance - 0.05), 1.02)
        permuted = Reference("y", chance, "permuted labels")
        yield panel(channel, y, partial(_largest, channel=channel), 1.0, [permuted])
    yield panel("loss", Axis("loss"), _loss, inf)


def _means(curves: Sequence[Mapping[float, float]], most: float) -> list[Point]:
    """Means of the seeds' curves, in the bounds of the metric, which are 0 and `most`.

    Seeds with the same number of moments are compared moment by moment, since the number of their steps may differ
    a little; others at common steps.
    """
    if len({len(curve) for curve in curves}) == 1:
        moments = [*zip(*(sorted(curve.items()) for curve in curves), strict=True)]
    else:
        common = set.intersection(*map(set, curves)) if curves else set()
        moments = [tuple((step, curve[step]) for curve in curves) for step in sorted(common)]
    points = []
    for moment in moments:
        steps, values = zip(*moment, strict=True)
        # Intervals of Student's t may exceed the bounds.
        mean = mean_interval(values, Interval(values[0], values[0], values[0])).clipped(0.0, most)
        points.append(Point.of(fmean(steps), mean))
    return points


def _largest(record: Record, channel: str, of_chance: bool = False) -> dict[float, float]:
    """Largest success of P³EFT's attacks at each step, or of the same attacks on permuted labels."""
    found: dict[float, float] = {}
    for leak in record.leaks:
        if leak.attack.name in BY_AUTHORS.names and leak.channel == channel:
            for one in leak.curve:
                value = one.success.chance if of_chance else one.success.value
                found[one.step] = max(found.get(one.step, 0.0), value)
    return found


def _loss(record: Record) -> dict[float, float]:
    last = max(one.step for leak in record.leaks for one in leak.curve) if record.loss else 0
    steps = np.linspace(0, 1, len(record.loss)) * last
    return dict(zip(map(float, steps), record.loss, strict=True))
