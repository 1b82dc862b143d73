"""Comparisons: one paired difference, with its interval, correction and verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, isnan, nan, sqrt
from typing import Literal

from leakboard.leaderboards.tables.intervals import MISSING, Interval, mean_interval
from leakboard.leaderboards.tables.results import Result
from leakboard.leaderboards.tables.settings import gain_over

Metric = Literal["leakage", "success", "utility", "cost", "perplexity"]
PERPLEXITY = "perplexity per token"
Verdict = Literal["less", "more", "undecided"]
LEVEL = 0.05


@dataclass(frozen=True)
class Difference:
    """How much larger a metric is at `a` than at `b`, paired over the seeds that both have.

    Attributes:
        metric: leakage and success as shares (exposure in bits), utility and cost in points, perplexity per token.
        mean: with its 95 % interval; missing where the two share no seed or one has no number.
        p: two-sided, of a paired t-test; NaN where nothing can be tested.
        is_clear: whether p is below 5 % — after `holm`, for the whole family.
        reason: why there is no difference, or why it must not be told; else ''.
    """

    a: Result
    b: Result
    metric: Metric
    mean: Interval
    p: float
    seeds: int
    is_clear: bool
    reason: str = ""

    @property
    def verdict(self) -> Verdict:
        if not self.is_clear:
            return "undecided"
        return "more" if self.mean.value > 0 else "less"

    def excludes(self, size: float) -> bool:
        """Whether a difference of this size, with its sign, lies outside the interval."""
        return not isnan(self.mean.low) and not self.mean.low <= size <= self.mean.high


def compare(a: Result, b: Result, metric: Metric) -> Difference:
    """a minus b, by a paired t-test over common seeds; with one common seed by the intervals inside the cells.

    Costs, utilities and perplexities are compared at equal tuning only.
    """
    reason = _reason(a, b, metric)
    if reason:
        return Difference(a, b, metric, MISSING, nan, 0, False, reason)
    if metric in ("utility", "cost"):
        mean, by_seed = gain_over(a.setting, b.setting)
        sign = 1 if metric == "utility" else -1
        mean = mean if sign > 0 else Interval(0.0 - mean.value, 0.0 - mean.high, 0.0 - mean.low)
        gaps = [sign * gap for gap in by_seed.values()]
    else:
        first, second = _by_seed(a, metric), _by_seed(b, metric)
        gaps = [first[s] - second[s] for s in sorted(first.keys() & second.keys())]
        mean = mean_interval(gaps, _unpaired(a, b, metric) if len(gaps) == 1 else MISSING)
    if not gaps:
        return Difference(a, b, metric, MISSING, nan, 0, False, "the two share no seed")
    p = _p(gaps, mean)
    return Difference(a, b, metric, mean, p, len(gaps), p < LEVEL)


def holm(family: Sequence[Difference]) -> list[Difference]:
    """The same differences, clear only where they are so after Holm's correction for all that are tested."""
    tested = sorted(
        (i for i, one in enumerate(family) if not isnan(one.p)), key=lambda i: family[i].p
    )
    clear: set[int] = set()
    for rank, i in enumerate(tested):
        if family[i].p * (len(tested) - rank) >= LEVEL:
            break
        clear.add(i)
    return [replace(one, is_clear=i in clear) for i, one in enumerate(family)]


def _reason(a: Result, b: Result, metric: Metric) -> str:
    if metric == "leakage":
        for one in (a, b):
            if not one.is_certified:
                return f"{one.name}: {one.reason}"
    if metric in ("utility", "cost", "perplexity"):
        if a.setting.group != b.setting.group:
            return "they were measured on different data"
        if a.setting.trials != b.setting.trials:
            return (
                f"they were not tuned alike: {a.name} by {a.setting.trials} trials, "
                f"{b.name} by {b.setting.trials}"
            )
    if metric == "cost":
        for one in (a, b):
            if not one.has_cost:
                return f"{one.name}: {one.cost_reason}"
    return ""


def _by_seed(one: Result, metric: Metric) -> Mapping[int, float]:
    if metric == "perplexity":
        records = one.setting.records.items()
        return {s: r.measures[PERPLEXITY].value for s, r in records if PERPLEXITY in r.measures}
    return one.leakage_by_seed if metric == "leakage" else one.success_by_seed


def _unpaired(a: Result, b: Result, metric: Metric) -> Interval:
    """The interval of a difference of two independent numbers."""
    if metric == "perplexity":
        return MISSING
    x, y = (a.leakage, b.leakage) if metric == "leakage" else (a.success, b.success)
    gap = x.value - y.value
    down = sqrt((x.value - x.low) ** 2 + (y.high - y.value) ** 2)
    up = sqrt((x.high - x.value) ** 2 + (y.value - y.low) ** 2)
    return Interval(gap, gap - down, gap + up)


def _p(gaps: Sequence[float], mean: Interval) -> float:
    n = len(gaps)
    if n == 1:
        half = (mean.high - mean.low) / 2
        return nan if isnan(half) else _normal_tail(mean.value, half / 1.959964)
    spread = sqrt(fsum((g - mean.value) ** 2 for g in gaps) / (n - 1) / n)
    if spread < 1e-9:  # the same number in every seed
        return 1.0 if abs(mean.value) < 1e-9 else 0.0
    from scipy.special import stdtr  # slow to import

    return float(2 * stdtr(n - 1, -abs(mean.value) / spread))


def _normal_tail(value: float, error: float) -> float:
    if error <= 0:
        return 1.0 if value == 0 else 0.0
    from scipy.special import ndtr  # slow to import

    return float(2 * ndtr(-abs(value) / error))
