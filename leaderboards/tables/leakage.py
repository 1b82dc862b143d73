"""Leakage: the share of what an attacker reads without the defense that it still reads with it.

    advantage = (success − baseline) / (ceiling − baseline)
    leakage   = advantage of the strongest attack / advantage of the strongest attack on the undefended twin

The baseline is chance, or the floor (the same attack on the untrained model) if that is higher. Both strongest attacks
are chosen without the reported numbers (cross-fitting): for each seed on the other seeds, or with one seed on the other
half of the units. No other module computes leakage.

What a seed reads depends on the seeds that the attack is chosen on. Numbers that are divided, subtracted or selected from
are therefore read on the same seeds, with the others left out of the choice as well:

- a leakage: the seeds that a setting shares with its twin;
- a comparison of two rows: the seeds that both rows and both twins share;
- a summary of a curve: the seeds that all its settings share.

Only where no seed is shared (for a curve: fewer than two), each is read on all of its own.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import sqrt
from statistics import fmean
from typing import Literal

from leakboard.bench.contracts import ANSWERED, Goal, Leak, MethodSpec, Record, grouped
from leakboard.bench.scoring import NEEDED, advantage_low, half_successes
from leakboard.leaderboards.tables.intervals import MISSING, Interval, mean_interval

Certification = Literal["certified", "exact", "not certified"]
CERTIFIED: Certification = "certified"
"""The twin's advantage is clearly above 0.2: there is something to take a share of."""
EXACT: Certification = "exact"
"""An attack recovers everything, which needs no twin."""
NOT_CERTIFIED: Certification = "not certified"
"""No attack is shown to work even without the defense: no leakage is given."""
FEWEST_EXACT = 20
"""Smallest number of units at which success on all of them cannot be luck."""
COMPARED = 0.5
"""Share of the strongest attack's advantage without a defense below which a setting is weakly attacked."""
Aim = tuple[Goal, str]
"""A goal, and the private attribute for attribute inference, else ''."""
Candidate = tuple[str, str, str, int]
"""An attack, its parameters as text, the channel that it reads, and the moment of training, see `_moment`."""
MOMENTS = 50
"""Number of parts of training, by which moments of seeds with different numbers of steps are matched."""
IN_USE = -2
"""The moment after training: a tuned language model answers prompts."""
LEAKAGE_WORDS = (
    "Leakage is what the strongest attack reads with the defense, as a share of what the strongest attack "
    "reads without it."
)
"""Sentence that explains leakage beside figures, boards and reports."""


@dataclass(frozen=True)
class Reader:
    """A selection of attacks by name, channel and parameters; empty means all.

    Attributes:
        worst: read the worst moment of each run, as P³EFT's paper reports, and not one chosen on other seeds.
    """

    names: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    params: Mapping[str, object] = field(default_factory=dict)
    worst: bool = False

    def __call__(self, candidate: Candidate) -> bool:
        name, given, channel, _ = candidate
        return (
            (not self.names or name in self.names)
            and (not self.channels or channel in self.channels)
            and (not self.params or self.params.items() <= dict(literal_eval(given)).items())
        )


ALL = Reader()
BY_AUTHORS = Reader(("spectral", "norm", "kmeans"), ("activations",), worst=True)
"""Attacks of P³EFT's authors, the channel that these read, and the moment of training that the paper reports."""


@dataclass(frozen=True)
class Reading:
    """Result of one attack in one cell at one moment.

    Attributes:
        success: success in the attack's metric, with the interval of the cell.
        baseline: chance, or the floor if that is higher.
        n: number of independent units.
        leak: leak with the raw guesses; None for a moment without.
    """

    candidate: Candidate
    version: int
    metric: str
    success: Interval
    chance: float
    baseline: float
    ceiling: float
    n: int
    leak: Leak | None

    @property
    def advantage(self) -> float:
        return self.scale(self.success.value)

    def scale(self, success: float) -> float:
        """(success − baseline) / (ceiling − baseline)."""
        return (success - self.baseline) / (self.ceiling - self.baseline)

    @property
    def advantage_interval(self) -> Interval:
        low = self.scale(self.success.low)
        if self.leak is not None and self.n == 1:
            low = advantage_low(self.leak) or low  # a single canary has no interval
        return Interval(self.advantage, low, self.scale(self.success.high))

    @property
    def is_exact(self) -> bool:
        return self.success.value >= self.ceiling and self.n >= FEWEST_EXACT


Readings = Mapping[Candidate, Reading]


def readings(record: Record, worst: bool = False) -> dict[Aim, dict[Candidate, Reading]]:
    """Readings of all attacks in a cell, by goal and attribute, without attacks that read nothing, such as `prior`.

    Only the newest version of an attack is used, and its first leak for each goal, attribute and channel. If that has
    a curve over training, each moment is a candidate. The floor of a curve is that of its worst moment, a maximum over
    many, which is no baseline for a single moment. The last moment has raw guesses and a floor, which counts for all.
    What the attack reads while the tuned model answers is a candidate of its own.

    Args:
        worst: of a curve, read the worst moment of the run alone, which nobody knows without the truth.
    """
    newest: dict[tuple[str, str], int] = {}
    named = [(leak, text_of(leak.attack)) for leak in record.leaks]
    for leak, params in named:
        attack = leak.attack.name, params
        newest[attack] = max(newest.get(attack, leak.attack.version), leak.attack.version)
    alike: dict[tuple[Goal, str, str, str, str], list[Leak]] = {}
    for leak, params in named:
        if leak.status != "ok" or leak.success is None or leak.channel is None:
            continue
        if leak.attack.version < newest[leak.attack.name, params]:
            continue
        what = (leak.goal, leak.attribute or "", params, leak.attack.name, str(leak.channel))
        alike.setdefault(what, []).append(leak)
    by_aim: dict[Aim, dict[Candidate, Reading]] = {}
    for (goal, attribute, params, *_), (first, *others) in alike.items():
        last = next((leak for leak in others if first.curve and leak.view == "last"), None)
        if worst and first.curve:
            first, last = first.model_copy(update={"curve": []}), None
        answering = next((leak for leak in others if leak.view.endswith(ANSWERED)), None)
        for leak in filter(None, (first, last, answering)):
            for reading in _moments(leak, params, leak if leak is answering else last or first):
                by_aim.setdefault((goal, attribute), {})[reading.candidate] = reading
    return by_aim


def text_of(attack: MethodSpec) -> str:
    """Parameters of an attack as text."""
    return str(sorted(attack.params.items()))


def by_aim(records: Mapping[int, Record], worst: bool = False) -> dict[Aim, dict[int, Readings]]:
    """The readings of each seed, by goal and attribute."""
    found: dict[Aim, dict[int, Readings]] = {}
    for seed, record in records.items():
        for aim, own in readings(record, worst).items():
            found.setdefault(aim, {})[seed] = own
    return found


def _moments(leak: Leak, params: str, floored: Leak) -> Iterable[Reading]:
    """Readings at the moments of a leak, without those whose baseline leaves nothing to read.

    Args:
        floored: the leak whose floor counts.
    """
    assert leak.success is not None
    end = max((point.step for point in leak.curve), default=0)
    points = [(_moment(point.step, end), point.success) for point in leak.curve]
    whole = MOMENTS if leak.view in ("worst", "last") else -1
    whole = IN_USE if leak.view.endswith(ANSWERED) else whole
    floor = floored.floor.value if floored.floor else 0.0
    for moment, success in points or [(whole, leak.success)]:
        baseline = max(success.chance, floor)
        if baseline < leak.ceiling:
            where = (leak.attack.name, params, str(leak.channel), moment)
            numbers = Interval.of(success), success.chance, baseline, leak.ceiling, success.n
            kept = None if points else leak
            yield Reading(where, leak.attack.version, leak.metric, *numbers, kept)


def _moment(step: int, end: int) -> int:
    """Part of training that ends at a step, from 0 to `MOMENTS`; −1 for messages outside of training."""
    return -1 if step < 0 else round(MOMENTS * step / end) if end else MOMENTS


def cross_fitted(by_seed: Mapping[int, Readings]) -> dict[int, Reading]:
    """For each seed, the reading of the attack and moment that are strongest on the other seeds.

    An exact success needs no cross-fitting. With one seed, the choice is made on one half of the units and reported on
    the other, both ways, without moments that have no raw guesses.
    """
    chosen: dict[int, Reading] = {}
    for seed in sorted(by_seed):
        candidates = by_seed[seed]
        exact = [reading for reading in candidates.values() if reading.is_exact]
        if exact:
            chosen[seed] = max(exact, key=lambda reading: reading.n)
            continue
        rest = [own for other, own in by_seed.items() if other != seed]
        others = {c: [own[c].advantage for own in rest if c in own] for c in candidates}
        means = {c: fmean(advantages) for c, advantages in others.items() if advantages}
        best = max(means, key=means.__getitem__, default=None)
        chosen[seed] = _by_halves(candidates) if best is None else candidates[best]
    return chosen


def _by_halves(candidates: Readings) -> Reading:
    """Mean of two readings, each chosen on one half of the units and reported on the other.

    The interval is that of all units if both halves choose the same attack, else that of two independent halves.
    """
    kept = {c: reading for c, reading in candidates.items() if reading.leak is not None}
    split = {
        c: s for c, reading in kept.items() if reading.leak and (s := half_successes(reading.leak))
    }
    if not split:
        return max((kept or candidates).values(), key=lambda reading: reading.advantage)
    chosen = [max(split, key=lambda c: kept[c].scale(split[c][half])) for half in (0, 1)]
    if chosen[0] == chosen[1]:
        return kept[chosen[0]]
    # The choice of each half is reported on the other.
    reported = [kept[chosen[0]], kept[chosen[1]]]
    advantages = [reported[0].scale(split[chosen[0]][1]), reported[1].scale(split[chosen[1]][0])]
    widths = [(a.advantage_interval.high - a.advantage_interval.low) / 2 for a in reported]
    half = sqrt(2 * (widths[0] ** 2 + widths[1] ** 2)) / 2
    first, mean = reported[0], fmean(advantages)
    span = first.ceiling - first.baseline
    low, value, high = (first.baseline + span * (mean + d) for d in (-half, 0.0, half))
    return replace(first, success=Interval(value, low, high), leak=None)


@dataclass(frozen=True)
class Strongest:
    """Readings of the strongest attack on one setting, by seed, chosen among the candidates."""

    candidates: Mapping[int, Readings]

    @cached_property
    def by_seed(self) -> Mapping[int, Reading]:
        return cross_fitted(self.candidates)

    def on(self, seeds: Collection[int]) -> Strongest:
        """The strongest attack that is chosen and reported on some of the seeds; on all if none of them is among these."""
        kept = {seed: own for seed, own in self.candidates.items() if seed in seeds}
        return Strongest(kept) if 0 < len(kept) < len(self.candidates) else self

    @cached_property
    def advantage(self) -> Interval:
        values = [reading.advantage for reading in self.by_seed.values()]
        return mean_interval(values, next(iter(self.by_seed.values())).advantage_interval)

    @cached_property
    def success(self) -> Interval:
        values = [reading.success.value for reading in self.by_seed.values()]
        found = mean_interval(values, next(iter(self.by_seed.values())).success)
        return replace(
            found, high=min(found.high, self.mean("ceiling"))
        )  # Student's t knows no limit

    @property
    def is_exact(self) -> bool:
        return all(reading.is_exact for reading in self.by_seed.values())

    def mean(self, name: Literal["chance", "baseline", "ceiling"]) -> float:
        return fmean(getattr(reading, name) for reading in self.by_seed.values())

    @property
    def leading(self) -> Reading:
        """A reading of the attack chosen for most seeds; the first of equal ones."""
        chosen = grouped(self.by_seed.values(), lambda reading: reading.candidate[0])
        return max(chosen.values(), key=len)[0]


def leakage(
    mine: Strongest, twin: Strongest | None, certification: Certification | None = None
) -> tuple[Interval, Mapping[int, float], Certification]:
    """Ratio of two mean advantages, with an interval paired over seeds (delta method).

    With one seed, the interval is that of the units of this cell.

    Args:
        twin: read on the seeds that it shares with the setting.
        certification: that of all seeds, where these are some of them; otherwise it is found on these.

    Returns:
        The share with its interval, not clipped, and by seed; missing if the cell is not certified. And why.
    """
    certification = certification or certification_of(mine, twin)
    if certification == EXACT:
        return Interval(1.0, 1.0, 1.0), dict.fromkeys(mine.by_seed, 1.0), EXACT
    if twin is None or certification == NOT_CERTIFIED:
        return MISSING, {}, NOT_CERTIFIED
    whole = twin.advantage.value
    mine = mine.on(twin.candidates)
    by_seed = {seed: reading.advantage / whole for seed, reading in mine.by_seed.items()}
    value = fmean(by_seed.values())
    if len(by_seed) > 1 and by_seed.keys() == twin.by_seed.keys():
        paired = [
            share + value * (1 - twin.by_seed[seed].advantage / whole)
            for seed, share in by_seed.items()
        ]
        spread = mean_interval(paired)
        half = (spread.high - spread.low) / 2
        return Interval(value, value - half, value + half), by_seed, certification
    ends = mine.advantage
    return Interval(value, ends.low / whole, ends.high / whole), by_seed, certification


def certification_of(mine: Strongest, twin: Strongest | None) -> Certification:
    """Whether an attack is shown to work: on the undefended twin, or by reading everything here.

    The advantage on the twin must be clearly above 0.2.
    """
    if twin is not None and twin.advantage.low > NEEDED:
        return CERTIFIED
    return EXACT if mine.is_exact else NOT_CERTIFIED
