"""Numbers with their 95 % interval, and their formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import fsum, isnan, nan, sqrt
from typing import Any

from leakboard.bench.contracts import Estimate
from leakboard.bench.scoring import Z


@dataclass(frozen=True)
class Interval:
    """A number with its 95 % interval; the ends are NaN if there is none."""

    value: float
    low: float
    high: float

    def clipped(self, least: float = 0.0, most: float = 1.0) -> Interval:
        """The interval clipped to a range, for display."""
        return Interval(*(x if isnan(x) else min(max(x, least), most) for x in self.ends))

    @property
    def ends(self) -> tuple[float, float, float]:
        return self.value, self.low, self.high

    @property
    def lowest(self) -> float:
        """The lower end, or the value if there is no interval."""
        return self.value if isnan(self.low) else self.low

    @property
    def is_missing(self) -> bool:
        return isnan(self.value)

    def columns(self, name: str) -> dict[str, float]:
        """Columns of a table: `name`, `name_low` and `name_high`."""
        return dict(zip((name, f"{name}_low", f"{name}_high"), self.ends, strict=True))

    @classmethod
    def of(cls, estimate: Estimate) -> Interval:
        """The interval of an estimate of a record."""
        return cls(estimate.value, estimate.low, estimate.high)

    @classmethod
    def of_row(cls, row: Any, name: str) -> Interval:
        """The interval in such columns of a row, a mapping or a series."""
        return cls(*(float(row[f"{name}{end}"]) for end in ("", "_low", "_high")))


MISSING = Interval(nan, nan, nan)


def mean_interval(values: Sequence[float], alone: Interval = MISSING) -> Interval:
    """Mean over seeds with the interval of Student's t.

    Args:
        alone: interval of a single value.
    """
    n = len(values)
    if n == 0:
        return MISSING
    mean = fsum(values) / n
    if n == 1:
        return Interval(mean, alone.low, alone.high)
    half = t_quantile(n - 1) * sqrt(fsum((v - mean) ** 2 for v in values) / (n - 1) / n)
    return Interval(mean, mean - half, mean + half)


def standard_error(mean: Interval, n: int) -> float:
    """Standard error of a mean over n seeds, or of the normal distribution for one, from its interval."""
    return (mean.high - mean.low) / 2 / (t_quantile(n - 1) if n > 1 else Z)


@cache
def t_quantile(freedom: int, tail: float = 0.025) -> float:
    """The value that Student's t exceeds with the probability `tail`."""
    from scipy.special import stdtrit  # slow to import

    return float(stdtrit(freedom, 1 - tail))


def format_number(value: float, digits: int = 2) -> str:
    """At most two decimals; a dash for a missing number, and no sign before 0."""
    return "–" if isnan(value) else f"{value:z.{digits}f}"


def format_percent(share: float) -> str:
    """A share from 0 to 1 as a whole percentage, clipped to 0 to 100."""
    return "–" if isnan(share) else f"{100 * min(max(share, 0.0), 1.0):.0f} %"


def format_points(value: float) -> str:
    """Points of utility with one decimal."""
    return format_number(value, 1)


def format_interval(interval: Interval, digits: int = 2) -> str:
    """'0.53 [0.51, 0.55]'; only the number if it has no interval or all three round to the same text."""
    value, low, high = (format_number(x, digits) for x in interval.ends)
    return value if "–" in (low, high) or value == low == high else f"{value} [{low}, {high}]"


def format_percent_interval(interval: Interval) -> str:
    """'46 % [44, 49]'."""
    value, low, high = (format_percent(x) for x in interval.ends)
    if "–" in (low, high) or value == low == high:
        return value
    return f"{value} [{low.removesuffix(' %')}, {high.removesuffix(' %')}]"


def count(n: int, noun: str) -> str:
    """'1 seed', '3 seeds'."""
    return f"{n:,} {noun}{'s' * (n != 1)}"
