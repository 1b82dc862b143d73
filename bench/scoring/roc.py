"""ROC curves of membership scores: values with intervals, the best of several attacks, and how many texts they need."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from leakboard.bench.contracts import Estimate, Ints, LeakboardError
from leakboard.bench.scoring.metrics import RESAMPLES, Floats, Z, wilson

Z_POWER = 0.841621
"""Normal quantile of a power of 80 %."""
Measured = Callable[[Floats, Floats], float]
"""A number of the curve, from false and true positive rates that run from (0, 0) to (1, 1)."""


@dataclass(frozen=True)
class Curve:
    """Counts [l] of members and of others at each score, from the highest score down; equal scores share a place."""

    inside: Ints
    outside: Ints

    @classmethod
    def of(cls, scores: NDArray[Any], member: NDArray[Any]) -> Self:
        levels, level = np.unique(-scores, return_inverse=True)
        inside, outside = (np.bincount(level[i], minlength=len(levels)) for i in (member, ~member))
        if not inside.sum() or not outside.sum():
            raise LeakboardError("membership: expected examples that were trained on, and others")
        return cls(inside, outside)

    def value(self, measure: Measured) -> float:
        return self._of(measure, self.inside, self.outside)

    def draws(self, measure: Measured, rng: Generator) -> list[float]:
        """[1000] values of resamples; members and others are drawn each among themselves."""
        n_in, n_out = int(self.inside.sum()), int(self.outside.sum())
        p_in, p_out = self.inside / n_in, self.outside / n_out
        return [
            self._of(measure, rng.multinomial(n_in, p_in), rng.multinomial(n_out, p_out))
            for _ in range(RESAMPLES)
        ]

    def _of(self, measure: Measured, inside: Ints, outside: Ints) -> float:
        tpr, fpr = (np.concatenate([[0], of.cumsum()]) for of in (inside, outside))
        return measure(fpr / outside.sum(), tpr / inside.sum())


def area(fpr: Floats, tpr: Floats) -> float:
    # Rounded, since groups that are parted entirely must come to exactly 1, and not to 1 − 10⁻¹⁶.
    return round(float(np.trapezoid(tpr, fpr)), 12)


def share_at(rate: float) -> Measured:
    return lambda false, tpr: float(tpr[false <= rate].max())


def estimate(
    measure: Measured, scores: NDArray[Any], member: NDArray[Any], chance: float
) -> Estimate:
    """A value of the ROC curve, false and true positive rates from (0, 0) to (1, 1), of scores [m].

    The interval is a percentile bootstrap over examples, members and others each among themselves.
    At 0 or 1 it would have no spread; Wilson's interval over the smaller group stands instead.
    """
    scores, member = checked(scores, member)
    curve = Curve.of(scores, member)
    measured = curve.value(measure)
    if measured in (0.0, 1.0):
        fewest = int(min(member.sum(), (~member).sum()))
        low, high = wilson(int(measured) * fewest, fewest)
    else:
        # An interval is a function of the scores.
        drawn = curve.draws(measure, np.random.default_rng(0))
        low, high = np.quantile(drawn, [0.025, 0.975])
    return Estimate(
        value=measured, low=float(low), high=float(high), n=len(scores), chance=float(chance)
    )


def checked(scores: NDArray[Any], member: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    scores, member = np.asarray(scores, dtype=np.float64), np.asarray(member, dtype=bool)
    if scores.ndim != 1 or scores.shape != member.shape:
        raise LeakboardError(
            f"expected one score per example, not {list(scores.shape)} for {list(member.shape)}"
        )
    if not np.isfinite(scores).all():
        raise LeakboardError("membership scores: some are not finite")
    return scores, member


@dataclass(frozen=True)
class CrossFitted:
    """Result of `cross_fitted`.

    Attributes:
        chosen: the attack that each half chose; the other half measured it.
        rates: by false positive rate the true positive rate.
        members, others: numbers of texts.
    """

    chosen: tuple[str, str]
    auc: Estimate
    rates: dict[float, Estimate]
    members: int
    others: int


def cross_fitted(
    scores: Mapping[str, NDArray[Any]], member: NDArray[Any], rates: Sequence[float] = ()
) -> CrossFitted:
    """The best of several attacks, without the luck of the choice.

    Members and others are divided at random into two halves. The attack with the largest AUC on one half is measured
    on the other half, both ways; the results are the means of the two. Intervals are percentile bootstraps within the
    halves, given the choice. That of a rate is widened to Wilson's interval over the members.

    Args:
        scores: [m] of each attack, [m], higher for those that seem to have been trained on.
        rates: false positive rates at which true positive rates are measured.

    Raises:
        LeakboardError: as for `auc`; or fewer than two members or others.
    """
    each = {name: checked(own, member) for name, own in scores.items()}
    member = np.asarray(member, dtype=bool)
    if min(member.sum(), (~member).sum()) < 2:
        raise LeakboardError("membership: expected at least two members and two others")
    order, first = np.random.default_rng(0).permutation(len(member)), np.zeros(len(member), bool)
    for inside in (member, ~member):
        rows = order[inside[order]]
        first[rows[: len(rows) // 2]] = True
    halves = (first, ~first)
    curves = [
        {name: Curve.of(own[half], member[half]) for name, (own, _) in each.items()}
        for half in halves
    ]
    best = [max(own, key=lambda name: own[name].value(area)) for own in curves]
    # What one half chooses is measured on the other.
    used = [own[name] for own, name in zip(curves, reversed(best), strict=True)]
    n_in = int(member.sum())

    def mean(measure: Measured, chance: float) -> Estimate:
        value = fmean(one.value(measure) for one in used)
        rng = np.random.default_rng(0)
        drawn = np.mean([one.draws(measure, rng) for one in used], axis=0)
        low, high = np.quantile(drawn, [0.025, 0.975])
        if measure is not area or value in (0.0, 1.0):
            found = wilson(round(value * n_in), n_in)
            low, high = min(low, found[0], value), max(high, found[1], value)
        return Estimate(
            value=value, low=float(low), high=float(high), n=len(member), chance=float(chance)
        )

    return CrossFitted(
        (best[0], best[1]),
        mean(area, 0.5),
        {rate: mean(share_at(rate), rate) for rate in rates},
        n_in,
        len(member) - n_in,
    )


def others_needed(fpr: float) -> int:
    """Smallest number of non-members of whom no false alarm at all shows a false positive rate of `fpr` (95 %)."""
    return math.ceil(math.log(0.05) / math.log1p(-fpr))


def largest_rate(others: int) -> float:
    """The false positive rate that no false alarm among so many non-members leaves possible (95 %)."""
    return 1 - math.exp(math.log(0.05) / others)


def members_needed(auc: float) -> int:
    """Members, and as many others, that show this AUC to be above 0.5 with 80 % power.

    By the normal approximation to the rank sum: (z₀.₉₇₅ + z₀.₈)²/(6 (AUC − ½)²).
    """
    return math.ceil((Z + Z_POWER) ** 2 / (6 * (auc - 0.5) ** 2))


def smallest_auc(members: int) -> float:
    """The AUC that so many members and others show with 80 % power; the inverse of `members_needed`."""
    return min(1.0, 0.5 + (Z + Z_POWER) / math.sqrt(6 * members))
