"""Whether a defense that refines another one gains utility over it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np

from leakboard.bench.contracts import Goal, Record, TrainSettings
from leakboard.bench.methods import Defense, registry
from leakboard.leaderboards.findings.finding import Finding, listed
from leakboard.leaderboards.tables import (
    Comparison,
    canonical_json,
    count,
    format_parameter,
    format_parameters,
    interval,
    paired,
    varying_names,
)

Pair = tuple[dict[int, Record], dict[int, Record]]
"""Records of the plain and of the refined setting, by seed."""
Trained = dict[TrainSettings, dict[int, Record]]
"""Records of one setting by how they were trained, and by seed."""


@dataclass(frozen=True)
class Gain:
    """Points of utility that a refined setting has more than the plain one, paired over seeds.

    Attributes:
        at: the setting, in words.
        keys: of the records of both.
        paid: what it costs in privacy, in words; '' where that is not asked.
    """

    value: float
    low: float
    high: float
    at: str
    seeds: int
    n: int
    metric: str
    keys: tuple[str, ...]
    paid: str = ""

    def __str__(self) -> str:
        paid = f" ({self.paid})" if self.paid else ""
        return f"{self.value:+.1f} [{self.low:+.1f}, {self.high:+.1f}] at {self.at}{paid}"


def found(compared: Sequence[Comparison]) -> Iterator[Finding]:
    """The points of utility that a refined defense gains over the one it refines, at equal parameters.

    A defense refines another one whose class it extends. Both stand on the same texts in the same
    order, so that seeds are compared one by one.
    """
    known = registry.defenses()
    for name, cls in known.items():
        for base in cls.__mro__[1:]:
            if issubclass(base, Defense) and known.get(getattr(base, "name", "")) is base:
                for comparison in compared:
                    if gains := _gains(comparison, name, base):
                        yield _finding(comparison, name, base.name, gains)


def _gains(comparison: Comparison, name: str, base: type[Defense]) -> list[Gain]:
    """One for each setting that both have in at least two seeds, trained alike where they were, along the knob.

    What only the refined one can be set to tells its settings apart where it varies.
    """
    plain: dict[str, Trained] = {}
    refined: dict[str, dict[str, Trained]] = {}
    for record in comparison.records:
        of = record.cell.defense
        if of.name in (name, base.name) and record.utility and not record.undefended:
            shared = {"cut": record.cell.cut} | {
                key: of.params.get(key) for key in base.model_fields
            }
            own = {key: value for key, value in of.params.items() if key not in shared}
            mine = plain if of.name == base.name else refined.setdefault(canonical_json(own), {})
            trained = mine.setdefault(canonical_json(shared), {})
            trained.setdefault(record.cell.train, {})[record.cell.seed] = record
    told = varying_names(refined)
    found = []
    for alone, by_shared in sorted(refined.items()):
        pairs: list[tuple[Any, Pair]] = [
            (json.loads(text).get(base.knob), (_like(train, plain.get(text, {})), records))
            for text, trained in by_shared.items()
            for train, records in trained.items()
        ]
        for knob, pair in pairs:
            for gain in gains_of([(knob, pair)], base):
                at = ", ".join(filter(None, [gain.at, format_parameters(alone, told)]))
                found.append((knob or 0.0, replace(gain, at=at, paid=_paid(*pair))))
    return [gain for _, gain in sorted(found, key=lambda one: -one[0])]


def _like(train: TrainSettings, plain: Trained) -> dict[int, Record]:
    """Of what was trained in several ways that which was trained alike, and else that of the highest utility."""
    return plain.get(train) or max(plain.values(), key=_utility, default={})


def _utility(records: Mapping[int, Record]) -> float:
    return fmean(record.utility.value for record in records.values() if record.utility)


def _paid(plain: Mapping[int, Record], refined: Mapping[int, Record]) -> str:
    """The points by which more is read of the inputs, by the strongest attack on each; '' where none was tried."""
    reads = [(_read(plain[seed]), _read(refined[seed])) for seed in plain.keys() & refined.keys()]
    more = [100 * (b - a) for a, b in reads if a is not None and b is not None]
    if len(more) < 2:
        return ""
    low, high = interval(more, np.nan, np.nan)
    return f"inputs read {fmean(more):+.1f} [{low:+.1f}, {high:+.1f}]"


def _read(record: Record) -> float | None:
    """Success of the strongest inversion."""
    every = [leak for leak in record.leaks if leak.goal == Goal.INVERSION and leak.channel]
    return max((leak.success.value for leak in every if leak.success), default=None)


def gains_of(pairs: Iterable[tuple[Any, Pair]], base: type[Defense]) -> list[Gain]:
    """One for each value of the knob of `base` at which two settings have at least two seeds, along it."""
    found = []
    for knob, (plain, refined) in pairs:
        lost, low, high, seeds = paired(plain, refined)
        if seeds < 2:
            continue
        some = next(iter(refined.values()))
        assert some.utility is not None
        gain = Gain(
            value=-100 * lost,
            low=-100 * high,
            high=-100 * low,
            at=format_parameter(base.knob, knob) if base.knob else base.name,
            seeds=seeds,
            n=some.utility.n,
            metric=some.utility_metric,
            keys=tuple(record.key for record in [*plain.values(), *refined.values()]),
        )
        found.append((knob if isinstance(knob, int | float) else 0.0, gain))
    return [gain for _, gain in sorted(found, key=lambda one: -one[0])]


def either_way(gains: Sequence[Gain]) -> str:
    """Where a gain is clear, and where a loss is."""
    more = [gain.at for gain in gains if gain.low > 0]
    less = [gain.at for gain in gains if gain.high < 0]
    parts = [f"a gain is clear at {listed(more)}"] if more else []
    parts += [f"a loss is clear at {listed(less)}"] if less else []
    return " and ".join(parts) or "no difference is shown"


def _finding(comparison: Comparison, name: str, base: str, gains: Sequence[Gain]) -> Finding:
    sure = [gain.at for gain in gains if gain.low > 0]
    verdict = f"a gain is clear at {listed(sure)}" if sure else "no gain is shown"
    return of_gains("variants", comparison, name, name, base, gains, verdict)


def of_gains(
    rule: str,
    comparison: Comparison,
    defense: str,
    named: str,
    base: str,
    gains: Sequence[Gain],
    verdict: str,
) -> Finding:
    """What a defense gains over another one, setting by setting; the largest gain is its figure.

    Args:
        named: the defense in words, where more than its name is to be said.
        base: what it is compared with, in words.
    """
    best = max(gains, key=lambda gain: gain.value)
    return Finding(
        rule=rule,
        claim=f"On {comparison.task} with {comparison.model} ({comparison.words}) {named} gains over {base}, "
        f"paired over {count(best.seeds, 'seed')}, {listed([str(gain) for gain in gains])} points of "
        f"{best.metric}: {verdict}.",
        task=comparison.task,
        model=comparison.model,
        settings=tuple(f"{defense} {gain.at}".replace(" = ", "=") for gain in gains),
        metric=f"points of {best.metric}",
        figure=best.value,
        interval=(best.low, best.high),
        n=best.n,
        seeds=best.seeds,
        attack="",
        keys=tuple(key for gain in gains for key in gain.keys),
    )
