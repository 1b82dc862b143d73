"""Results for several goals at once: a setting leaks as much as the goal of which most leaks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from leakboard.bench.contracts import Goal
from leakboard.leaderboards.tables.defenses import goals_of
from leakboard.leaderboards.tables.intervals import MISSING
from leakboard.leaderboards.tables.leakage import NOT_CERTIFIED
from leakboard.leaderboards.tables.results import Result

BOTH = (Goal.INVERSION, Goal.LABEL)
"""Texts and labels, which defenses of one alone give away."""


def joint_results(rows: Iterable[Result], goals: Sequence[Goal]) -> list[Result]:
    """One row for each setting of a defense that is made against all of the goals; its goal is the first of them.

    The leakage of a seed is that of the goal of which most leaks; attack and success are those of the goal of which
    most leaks over all seeds. Without a certificate for each goal, there is no leakage.
    """
    by_setting: dict[int, dict[Goal, list[Result]]] = {}
    for row in rows:
        if row.goal in goals and goals_of(row.defense).issuperset(goals):
            by_setting.setdefault(id(row.setting), {}).setdefault(row.goal, []).append(row)
    return [
        _most([one for same in own.values() for one in same], goals)
        for own in by_setting.values()
        if len(own) == len(goals)
    ]


def _most(own: Sequence[Result], goals: Sequence[Goal]) -> Result:
    open_ = next((one for one in own if not one.is_certified), None)
    if open_ is not None:
        return replace(
            open_, goal=goals[0], certification=NOT_CERTIFIED, leakage=MISSING, leakage_by_seed={}
        )
    most = max(own, key=lambda one: one.leakage.value)
    seeds = set.intersection(*(set(one.leakage_by_seed) for one in own))
    by_seed = {seed: max(one.leakage_by_seed[seed] for one in own) for seed in sorted(seeds)}
    return replace(most, goal=goals[0], leakage_by_seed=by_seed)
