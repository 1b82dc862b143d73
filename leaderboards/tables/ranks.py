"""Ranks from values over seeds: what cannot be told apart is tied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum

import numpy as np

from leakboard.leaderboards.tables.means import interval


@dataclass(frozen=True)
class Contender:
    """What takes part in a ranking: its value for each seed, and the interval inside a lone cell."""

    values: dict[int, float]
    low: float
    high: float

    @cached_property
    def mean(self) -> float:
        return fsum(self.values.values()) / len(self.values)

    @cached_property
    def band(self) -> tuple[float, float]:
        """95 % interval of the mean: over the seeds, or inside the cell where there is one."""
        return interval(self.values.values(), self.low, self.high)


TOLD = 0.0005
"""Values that differ by less are the same to three digits, which is what a board shows: they are tied."""


def clearly_better(a: Contender, b: Contender) -> bool:
    """Whether a's value is above b's beyond chance, and by so much that a board shows it.

    By a paired t-test over the seeds that both have (two-sided, 5 %); where they share fewer than
    two, by intervals that do not overlap.
    """
    if a.mean - b.mean < TOLD:
        return False
    common = sorted(a.values.keys() & b.values.keys())
    if len(common) < 2:
        return a.band[0] > b.band[1]
    gaps = [a.values[seed] - b.values[seed] for seed in common]
    return interval(gaps, np.nan, np.nan)[0] > 1e-12


def ranks(field: Sequence[Contender]) -> list[tuple[int, int]]:
    """For each contender the best and the worst rank that the data allow; equal ones share both."""
    beats = np.array([[clearly_better(a, b) for b in field] for a in field], dtype=bool)
    beats = beats.reshape(len(field), len(field))
    best = 1 + beats.sum(axis=0)
    worst = len(field) - beats.sum(axis=1)
    return list(zip(best.tolist(), worst.tolist(), strict=True))


def spelled(best: int, worst: int) -> str:
    """'2', or '2–4' for a tie."""
    return str(best) if best == worst else f"{best}–{worst}"
