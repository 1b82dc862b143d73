"""What it changes to compute in bf16: utility, and every leak."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from leakboard.bench.contracts import Leak, Record, attack_id
from leakboard.bench.scoring import UNTUNED
from leakboard.leaderboards.findings.finding import Finding
from leakboard.leaderboards.tables import (
    Comparison,
    counted,
    interval,
    knob,
    paired,
    ranged,
    setting,
)

PLAIN = "float32"
Pair = tuple[Record, Record]
"""The same cell in float32 and in another precision."""


@dataclass(frozen=True)
class Change:
    """How much more an attack finds than in float32, the mean over seeds.

    Attributes:
        low: lower end of its 95 % interval; NaN with one seed.
        what: the attack and what it reads, in words.
    """

    value: float
    low: float
    high: float
    what: str

    def __str__(self) -> str:
        return ranged(self.value, self.low, self.high)


def found(compared: Sequence[Comparison]) -> Iterator[Finding]:
    """For each setting that ran in float32 and in bf16, seed by seed: they differ in nothing else."""
    records = [record for comparison in compared for record in comparison.records]
    known = {record.key: record for record in records if record.status == "ok"}
    groups: dict[str, dict[int, Pair]] = {}
    for record in known.values():
        cell = record.cell
        if cell.train.precision == PLAIN or cell.defense.name == UNTUNED:
            continue
        train = cell.train.model_copy(update={"precision": PLAIN})
        plain = known.get(cell.model_copy(update={"train": train}).key)
        if plain is not None:
            alike = cell.model_copy(update={"seed": 0}).key
            groups.setdefault(alike, {})[cell.seed] = plain, record
    for pairs in groups.values():
        yield _finding(pairs)


def _finding(pairs: Mapping[int, Pair]) -> Finding:
    plain = {seed: pair[0] for seed, pair in pairs.items()}
    other = {seed: pair[1] for seed, pair in pairs.items()}
    cell, utility = next(iter(other.values())).cell, next(iter(plain.values())).utility
    metric = next(iter(plain.values())).utility_metric
    lost, low, high, seeds = paired(plain, other)
    name = knob(cell.defense.name, [])
    words = setting(name, cell.defense.params[name]) if name else ""
    what = f"{cell.defense.name} {words}".replace(" = ", "=").strip()
    changes = _changes(list(pairs.values()))
    moved = [change for change in changes if change.value or change.low < change.high]
    told = f"all {len(changes)} leaks are the same"
    if moved:
        most = max(moved, key=lambda change: abs(change.value))
        clear = sum(change.low > 0 or change.high < 0 for change in moved)
        kept = len(changes) - len(moved)
        told = (
            f"of {len(changes)} leaks {kept} {'is' if kept == 1 else 'are'} the same, the largest difference "
            f"of a success is {most} ({most.what}), and {clear or 'none'} of the differences "
            f"{'is' if clear < 2 else 'are'} clear of 0"
        )
    ends = ranged(100 * lost, 100 * low, 100 * high)
    return Finding(
        rule="precision",
        claim=f"On {cell.task} with {cell.model}, {what} in {cell.train.precision} instead of {PLAIN} loses "
        f"{ends} points of {metric}, paired over {counted(seeds, 'seed')}; {told}.",
        task=cell.task,
        model=cell.model,
        settings=(what,),
        metric=f"points of {metric}",
        figure=100 * lost,
        interval=(100 * low, 100 * high),
        n=utility.n if utility else 0,
        seeds=seeds,
        attack="",
        keys=tuple(record.key for pair in pairs.values() for record in pair),
    )


def _changes(pairs: Sequence[Pair]) -> list[Change]:
    """One for each leak that all records have."""
    seen = [[_leaks(record) for record in pair] for pair in pairs]
    shared = set.intersection(*(set(leaks) for pair in seen for leaks in pair))
    found = []
    for key in sorted(shared, key=str):
        gaps = np.array([other[key][1] - plain[key][1] for plain, other in seen])
        low, high = interval(gaps, np.nan, np.nan)
        found.append(Change(float(gaps.mean()), low, high, seen[0][0][key][0]))
    return found


def _leaks(record: Record) -> dict[tuple[str | None, ...], tuple[str, float]]:
    """In words and by its success each leak that there is."""
    return {
        (attack_id(leak.attack), leak.goal, leak.attribute, leak.channel, leak.view, leak.metric): (
            _words(leak),
            leak.success.value,
        )
        for leak in record.leaks
        if leak.success
    }


def _words(leak: Leak) -> str:
    return f"{leak.attack.name} on {leak.channel}" if leak.channel else leak.attack.name
