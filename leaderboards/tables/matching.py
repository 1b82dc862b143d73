"""Settings of several defenses at the same utility."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from statistics import fmean

from leakboard.leaderboards.tables.measured import Setting
from leakboard.leaderboards.tables.standing import CERTIFIED

FREE_LOSS = 1.0
"""Points of utility that the question of the best privacy grants, and within which utility is matched."""
HELD_OUT, REPORTED = "held-out trials", "the reported figure"
"""What utility was matched on: what was reported has no part in a choice made on the first."""
NEAR = 1e-9


@dataclass(frozen=True)
class Matched:
    """What defenses offer at the same utility.

    Attributes:
        inside: of each defense the setting that keeps most of those whose utility is the same.
        apart: of each other defense the setting whose utility is nearest to that without protection.
        plain: no protection.
        by: on what their utility was compared, `HELD_OUT` or `REPORTED`.
        held_out: by setting the points lost on held-out trials, which then decide; empty where the
            reported figure does.
    """

    inside: Sequence[Setting]
    apart: Sequence[Setting]
    plain: Setting
    by: str
    held_out: Mapping[int, float]

    def on_trials(self, one: Setting) -> float | None:
        """Points that a setting loses on held-out trials, by which it is matched or not; None where these do
        not decide."""
        return self.held_out.get(id(one))


def at_same_utility(settings: Sequence[Setting]) -> Matched | None:
    """Of each defense the setting that keeps most at the same utility; None without any, or without `none`.

    Utility is the same within `FREE_LOSS` points of no protection and of each other: that of the trials on
    held-out training examples, seed by seed, where some setting of every defense shares seeds with no protection,
    else the one that is reported. A setting of which no trial tells is then left out. Of all such ranges the one
    is taken that holds settings of most defenses; of as many the one nearest to no protection.
    """
    plains = [one for one in settings if one.row["undefended"] and one.row["defense"] == "none"]
    plain = next((one for one in plains if one.lost["held_out"]), plains[0] if plains else None)
    others = [one for one in settings if not one.row["undefended"]]
    if plain is None or not others:
        return None
    by, lost = REPORTED, {id(one): float(one.lost["points"]) for one in others}
    trials = {id(o): points for o in others if not isnan(points := _lost_in_trials(plain, o))}
    tried = [one for one in others if id(one) in trials]
    if _defenses(tried) == _defenses(others):
        by, lost, others = HELD_OUT, trials, tried
    # Each range ends at a setting, or at no protection itself.
    starts = {0.0, -FREE_LOSS, *lost.values()}
    starts |= {start - FREE_LOSS for start in starts}
    ranges = [start for start in starts if -FREE_LOSS <= start <= 0.0]
    low = max(
        ranges,
        key=lambda at: (len(_defenses(_inside(others, lost, at))), -abs(at)),
    )
    inside = sorted(_inside(others, lost, low), key=_keeps, reverse=True)
    chosen = _first_of_each(inside)
    nearest = _first_of_each(sorted(others, key=lambda one: abs(lost[id(one)])))
    apart = [one for name, one in nearest.items() if name not in chosen]
    held_out = {**lost, id(plain): 0.0} if by == HELD_OUT else {}
    return Matched([*chosen.values()], apart, plain, by, held_out)


def _defenses(settings: Sequence[Setting]) -> set[str]:
    return {str(one.row["defense"]) for one in settings}


def _lost_in_trials(plain: Setting, one: Setting) -> float:
    """Points lost against no protection on what was held out: the mean over the seeds of both, or NaN.

    Each seed holds out other examples, and a trial that won has more seeds than one that did not.
    """
    without, mine = plain.lost["held_out"], one.lost["held_out"]
    gaps = [without[seed] - mine[seed] for seed in without.keys() & mine.keys()]
    return 100 * fmean(gaps) if gaps else nan


def _inside(settings: Sequence[Setting], lost: Mapping[int, float], low: float) -> list[Setting]:
    """Those whose loss of utility lies in a range of `FREE_LOSS` points."""
    return [one for one in settings if low - NEAR <= lost[id(one)] <= low + FREE_LOSS + NEAR]


def _first_of_each(settings: Sequence[Setting]) -> dict[str, Setting]:
    """By defense."""
    found: dict[str, Setting] = {}
    for one in settings:
        found.setdefault(str(one.row["defense"]), one)
    return found


def _keeps(one: Setting) -> tuple[bool, float]:
    return one.standing == CERTIFIED, one.privacy.mean
