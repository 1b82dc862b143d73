"""What knowing how frequent words are adds to the nearest neighbour, and what the mechanism allows at most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from leakboard.bench.contracts import Leak, Record
from leakboard.leaderboards.findings.finding import Finding, listed
from leakboard.leaderboards.tables import Comparison, count, interval, setting_named, setting_of

PLAIN, KNOWS = "eia-nn", "eia-bayes"
Pair = tuple[Record, Leak, Leak]
"""A record, and what the nearest neighbour and who knows the mechanism read of it."""


@dataclass(frozen=True)
class Ahead:
    """Points of success beyond the nearest neighbour, the mean over seeds.

    Attributes:
        read: its success.
        most: the largest one that the mechanism leaves to who knows how frequent single words are in
            public text; None where none is told.
    """

    at: str
    value: float
    low: float
    high: float
    read: float
    most: float | None
    pairs: Sequence[Pair]

    def __str__(self) -> str:
        bound = "" if self.most is None else f", {self.read:.3f} of at most {self.most:.3f}"
        return f"{self.value:+.1f} [{self.low:+.1f}, {self.high:+.1f}] at {self.at}{bound}"


def found(compared: Sequence[Comparison]) -> Iterator[Finding]:
    """Of each defense at each setting; both attacks read one transcript, so that seeds are compared one by one.

    Where they never differ, there is no mechanism to know, and nothing is said.
    """
    for comparison in compared:
        pairs: dict[str, list[Pair]] = {}
        for record in comparison.records:
            if not record.undefended and (pair := _pair(record)):
                pairs.setdefault(record.key, []).append(pair)
        by_defense: dict[str, list[Ahead]] = {}
        for row in comparison.settings.to_dict("records"):
            own = [one for key in comparison.keys[setting_of(row)] for one in pairs.get(key, [])]
            if len(own) > 1:
                name = setting_named(str(row["defense"]), str(row["label"]))
                by_defense.setdefault(str(row["defense"]), []).append(_ahead(name, own))
        for every in by_defense.values():
            if any((one.value, one.low, one.high) != (0, 0, 0) for one in every):
                yield _finding(comparison, every)


def _pair(record: Record) -> Pair | None:
    def headline(name: str) -> Leak | None:
        own = [leak for leak in record.leaks if leak.attack.name == name and leak.success]
        newest = max((leak.attack.version for leak in own), default=0)
        return next((leak for leak in own if leak.attack.version == newest), None)

    plain, knows = headline(PLAIN), headline(KNOWS)
    if plain is None or knows is None or plain.channel != knows.channel:
        return None
    return record, plain, knows


def _ahead(name: str, own: Sequence[Pair]) -> Ahead:
    reads = [
        (mine.success.value, nn.success.value) for _, nn, mine in own if mine.success and nn.success
    ]
    more = [100 * (mine - nn) for mine, nn in reads]
    bounds = [leak.bound for _, _, leak in own if leak.bound is not None]
    return Ahead(
        name,
        fmean(more),
        *interval(more, np.nan, np.nan),
        read=fmean(mine for mine, _ in reads),
        most=fmean(bounds) if len(bounds) == len(own) else None,
        pairs=own,
    )


def _finding(comparison: Comparison, every: Sequence[Ahead]) -> Finding:
    best = max(every, key=lambda one: one.value)
    parts = [
        f"{words} at {listed(own)}"
        for words, own in (
            ("a gain is clear", [one.at for one in every if one.low > 0]),
            ("a loss is clear", [one.at for one in every if one.high < 0]),
        )
        if own
    ]
    _, _, leak = best.pairs[0]
    return Finding(
        rule="posterior",
        claim=f"On {comparison.task} with {comparison.model} ({comparison.words}), {KNOWS} reads more tokens than "
        f"{PLAIN} by so many points, paired over {count(len(best.pairs), 'seed')}: "
        f"{listed([str(one) for one in every])}: {' and '.join(parts) or 'no difference is shown'}.",
        task=comparison.task,
        model=comparison.model,
        settings=tuple(one.at for one in every),
        metric=f"points of {leak.metric}",
        figure=best.value,
        interval=(best.low, best.high),
        n=leak.success.n if leak.success else 0,
        seeds=len(best.pairs),
        attack=KNOWS,
        keys=tuple(record.key for one in every for record, _, _ in one.pairs),
    )
