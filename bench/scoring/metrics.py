"""Estimates of shares with 95 % intervals and chance levels."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from leakboard.bench.contracts import Estimate, Ints

Floats: TypeAlias = NDArray[np.float64]
RESAMPLES = 1000
BLOCK = 2**22
"""Number of resampling weights in memory at once."""
Z = 1.959964
"""Normal quantile of a two-sided 95 % interval."""
GAINED = "exposure gained"
"""Metric of the increase of exposure by training, in bits."""


def share(hits: Ints, totals: Ints, chance: float) -> Estimate:
    """Σ hits / Σ totals with a percentile bootstrap over examples.

    Tokens of one example are not independent, so examples are resampled. If all guesses are right or all are wrong,
    the bootstrap has no spread, and Wilson's interval over the examples is used.

    Args:
        hits: [n] number of right guesses of each example.
        totals: [n] number of guesses of each example; examples with none are left out.

    Raises:
        ValueError: nothing to score.
    """
    used = totals > 0
    hits, totals = hits[used], totals[used]
    n = len(hits)
    if n == 0:
        raise ValueError("no example has anything to score")
    value = hits.sum() / totals.sum()
    if value in (0.0, 1.0):
        low, high = wilson(int(value) * n, n)
    else:
        first = totals[0]
        equal = bool((totals == first).all())  # their sum is that of every resample
        low, high = middle(resample(n, lambda w: (w @ hits) / (n * first if equal else w @ totals)))
    return Estimate(value=float(value), low=float(low), high=float(high), n=n, chance=float(chance))


def middle(values: Floats) -> tuple[float, float]:
    """Quantiles 0.025 and 0.975, equal to those of `np.quantile` and faster."""
    ordered, ends = np.sort(values), []
    for share in (0.025, 0.975):
        place = share * (len(ordered) - 1)
        below = math.floor(place)
        a, b, t = ordered[below], ordered[min(below + 1, len(ordered) - 1)], place - below
        # As in NumPy, interpolation starts at the nearer end, which is then exact.
        ends.append(float(b - (b - a) * (1 - t) if t >= 0.5 else a + (b - a) * t))
    return ends[0], ends[1]


def resample(n: int, statistic: Callable[[Ints], Floats]) -> Floats:
    """[1000] a statistic of each resample, in blocks that bound memory.

    Args:
        statistic: [R] values from weights [R, n], each from one row, with exact sums.
    """
    if n * RESAMPLES <= BLOCK:
        return statistic(resamples(n))
    rng, rows = np.random.default_rng(0), max(1, BLOCK // n)
    sizes = [min(rows, RESAMPLES - at) for at in range(0, RESAMPLES, rows)]
    return np.concatenate([statistic(_draw(rng, n, size)) for size in sizes])


@lru_cache(maxsize=8)
def resamples(n: int) -> Ints:
    """[1000, n] number of times that each example occurs in each resample; read-only."""
    # The seed is fixed, so that an interval is a function of the raw guesses.
    weights = _draw(np.random.default_rng(0), n, RESAMPLES)
    weights.setflags(write=False)
    return weights


def _draw(rng: Generator, n: int, size: int) -> Ints:
    return rng.multinomial(n, np.full(n, 1 / n), size=size)


def wilson(hits: float, n: int) -> tuple[float, float]:
    """Wilson's 95 % score interval of hits/n; hits may be a share of n that is no whole number."""
    centre = (hits + Z * Z / 2) / (n + Z * Z)
    half = Z / (n + Z * Z) * math.sqrt(hits * (n - hits) / n + Z * Z / 4)
    # If all are right or all wrong, one end is exactly 0 or 1, which the formula may miss by 10⁻¹⁶.
    return (centre - half if hits else 0.0), (centre + half if hits < n else 1.0)


def mean_ranks(values: NDArray[Any]) -> Floats:
    """[n] ranks from 1 on of finite numbers [n]; equal ones share the mean of their ranks."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranks


def most_frequent_share(values: Ints, guesses: int = 1) -> float:
    """Success of always guessing the `guesses` most frequent of `values`."""
    counts = np.sort(np.unique(values, return_counts=True)[1])
    return float(counts[-guesses:].sum() / counts.sum())
