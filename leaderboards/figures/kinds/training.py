"""Label privacy over time: success of attacks and loss along the steps of training."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import fmean

import numpy as np

from leakboard.bench.contracts import Goal, LeakboardError, Record
from leakboard.leaderboards.figures.drawing import Request
from leakboard.leaderboards.figures.kinds.sensitivity import THEIRS
from leakboard.leaderboards.figures.series import Place, measured_words
from leakboard.leaderboards.rendering import (
    LINES,
    Axis,
    Line,
    Panel,
    Plot,
    Point,
    Reference,
    Series,
    exact,
)
from leakboard.leaderboards.tables import (
    Interval,
    RecordSet,
    ResultsTable,
    Setting,
    mean_interval,
    style_of,
)

CHANNELS = ("activations", "gradients")


def plots(found: RecordSet, request: Request) -> Iterator[tuple[str, Plot]]:
    """Success of P³EFT's attacks on activations and on gradients, and the loss."""
    yield "training", training(found.table)


def training(table: ResultsTable) -> Plot:
    """Three panels for each task and model, with a line for each setting: means over seeds with 95 % bands.

    Raises:
        LeakboardError: no record has a curve over training.
    """
    rows: dict[tuple[str, str], list[Setting]] = {}
    for group in table.groups:
        for setting in group.settings:
            if any(leak.curve for record in setting.records.values() for leak in record.leaks):
                rows.setdefault((setting.task, setting.model), []).append(setting)
    if not rows:
        raise LeakboardError(
            "nothing to plot: no record has a curve over training; label attacks draw it where a "
            "defense sends activations or gradients while it trains"
        )
    panels = [
        panel
        for (task, model), own in rows.items()
        for panel in _panels(Place(task, model).title, own)
    ]
    chosen = {id(setting) for own in rows.values() for setting in own}
    labels = [r for r in table.select(goal=Goal.LABEL) if id(r.setting) in chosen]
    caption = (
        "Success at a moment: the largest of the spectral, norm and k-means attacks, over adapters and servers. "
        f"{measured_words(labels) if labels else ''}"
    )
    return Plot("Leak of labels during training", panels, caption.strip(), columns=3)


def _panels(title: str, settings: Sequence[Setting]) -> Iterator[Panel]:
    styles = list(_styles(settings))
    for channel in CHANNELS:
        chance = _chance([r for s in settings for r in s.records.values()], channel)
        series = [
            _mean_series(
                [_curve(record, channel) for record in one.records.values()],
                name,
                colour,
                line,
                1.0,
                one.defense,
            )
            for one, name, colour, line in styles
        ]
        lines = [Reference("y", chance, "permuted labels")]
        y = Axis("success of attacks", min(0.45, chance - 0.05), 1.02)
        yield Panel(f"{title}\n{channel}", Axis("step"), y, series, lines, height=2.3, weight=0.72)
    losses = [
        _mean_series(
            [_loss(record) for record in one.records.values()],
            name,
            colour,
            line,
            np.inf,
            one.defense,
        )
        for one, name, colour, line in styles
    ]
    yield Panel(f"{title}\nloss", Axis("step"), Axis("loss"), losses, height=2.3, weight=0.72)


def _styles(settings: Sequence[Setting]) -> Iterator[tuple[Setting, str, str, Line]]:
    counts: dict[str, int] = {}
    for one in settings:
        place = counts.get(one.defense, 0)
        counts[one.defense] = place + 1
        yield one, one.name, style_of(one.defense).colour, LINES[place % len(LINES)]


def _mean_series(
    curves: Sequence[Mapping[float, float]],
    name: str,
    colour: str,
    line: Line,
    most: float,
    group: str,
) -> Series:
    """Mean of the seeds' curves.

    Seeds with the same number of moments are compared moment by moment, since the number of their steps may differ
    a little; others at common steps.

    Args:
        most: largest possible value; the smallest is 0.
    """
    if len({len(curve) for curve in curves}) == 1:
        moments = [*zip(*(sorted(curve.items()) for curve in curves), strict=True)]
    else:
        common = set.intersection(*map(set, curves)) if curves else set()
        moments = [tuple((step, curve[step]) for curve in curves) for step in sorted(common)]
    points = []
    for moment in moments:
        step, values = fmean(step for step, _ in moment), [value for _, value in moment]
        # Intervals of Student's t may exceed the bounds of the metric.
        mean = mean_interval(values, Interval(values[0], values[0], values[0])).clipped(0.0, most)
        points.append(Point(exact(step), mean))
    return Series(name, points, colour, "", line, band=True, group=group)


def _curve(record: Record, channel: str, attacks: Collection[str] = THEIRS) -> dict[float, float]:
    """Largest success at each step."""
    found: dict[float, float] = {}
    for leak in record.leaks:
        if leak.attack.name in attacks and leak.channel == channel:
            for one in leak.curve:
                found[one.step] = max(found.get(one.step, 0.0), one.success.value)
    return found


def _loss(record: Record) -> dict[float, float]:
    last = max(one.step for leak in record.leaks for one in leak.curve) if record.loss else 0
    steps = np.linspace(0, 1, len(record.loss)) * last
    return dict(zip(map(float, steps), record.loss, strict=True))


def _chance(records: Sequence[Record], channel: str) -> float:
    """Mean over all moments of the best attack's success on permuted labels."""
    found: dict[tuple[str, float], float] = {}
    for record in records:
        for leak in record.leaks:
            if leak.attack.name in THEIRS and leak.channel == channel:
                for one in leak.curve:
                    at = (record.key, one.step)
                    found[at] = max(found.get(at, 0.0), one.success.chance)
    return float(np.mean([*found.values()])) if found else 0.5
