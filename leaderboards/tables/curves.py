"""A defense's curve against one goal, and its two summaries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean
from typing import Literal

from leakboard.bench.contracts import Goal, grouped
from leakboard.leaderboards.tables.defenses import display_name, goals_of
from leakboard.leaderboards.tables.intervals import (
    MISSING,
    Interval,
    mean_interval,
)
from leakboard.leaderboards.tables.result import BUDGET, Result, most_leaking
from leakboard.leaderboards.tables.settings import NOT_REPRODUCED

HALF = 0.5
BOTH = (Goal.INVERSION, Goal.LABEL)
"""Texts and labels, which defenses of one alone give away."""


@dataclass(frozen=True)
class Summary:
    """One number of a curve, chosen on the other seeds and reported on each.

    Attributes:
        value: leakage (a share), or cost in points; missing where no setting qualifies.
        setting: setting chosen on all seeds; None if none qualifies.
        note: a warning where the setting was chosen on the reported numbers, or an empty string.
    """

    value: Interval
    setting: Result | None
    note: str = ""


NEVER = Summary(MISSING, None)
SELF_CHOSEN = "chosen on the reported numbers, since the settings share fewer than two seeds"


def smallest(summaries: Iterable[Summary]) -> Summary:
    """The summary with the smallest number, of a setting that still learns if there is any; `NEVER` if none has a setting."""

    def order(one: Summary) -> tuple[bool, float]:
        return one.setting is None or not one.setting.still_learns, one.value.value

    return min((one for one in summaries if one.setting is not None), key=order, default=NEVER)


@dataclass(frozen=True)
class Curve:
    """The measured settings of one defense against one goal, on one task and model.

    Attributes:
        results: one for each choice of parameters and training, the weakest protection first. If there are several, by
            circumstances or comparisons, the one that leaks most.
    """

    task: str
    model: str
    defense: str
    goal: Goal
    attribute: str
    results: tuple[Result, ...]

    @property
    def title(self) -> str:
        """The defense as its authors write it, with a mark if some of it was not reproduced."""
        marked = any(not row.setting.is_reproduced for row in self.results)
        return display_name(self.defense) + (f" ({NOT_REPRODUCED})" if marked else "")

    @property
    def is_made_for_goal(self) -> bool:
        return self.results[0].is_made_for_goal

    @property
    def certified(self) -> list[Result]:
        return [row for row in self.results if row.is_certified]

    @property
    def priced(self) -> list[Result]:
        """Certified settings with a comparable cost that strong attacks met."""
        return [row for row in self.results if row.is_priced]

    @property
    def reason_without_rank(self) -> str:
        """Reasons why no setting is ranked."""
        return "; ".join(dict.fromkeys(row.reason_without_rank for row in self.certified))

    def leakage_within(self, budget: float = BUDGET) -> Summary:
        """The least leakage of a setting that costs at most `budget` points and still learns."""
        worth = [row for row in self.priced if row.still_learns]
        return _cross_fitted(worth, lambda leak, cost: leak if cost <= budget else inf, "leakage")

    def cost_of_halving(self) -> Summary:
        """The least cost of a measured setting that leaks at most half; missing means never.

        It is of settings that still learn, or of others if none of them leaks so little.
        """

        def of(rows: Sequence[Result]) -> Summary:
            return _cross_fitted(rows, lambda leak, cost: cost if leak <= HALF else inf, "cost")

        half = of([row for row in self.priced if row.still_learns])
        return half if half.setting else of(self.priced)


def curves(table: Iterable[Result]) -> list[Curve]:
    """All curves of defenses, in order of appearance. Baselines (no protection, the untuned model) have none."""
    defended = (row for row in table if not row.is_baseline)
    places = grouped(defended, lambda row: (row.defense, row.question))
    found = []
    for (defense, question), own in places.items():
        alike = grouped(own, lambda row: row.setting.offer[:-1])
        rows = (row for same in alike.values() for row in _rows(same))
        task, model, goal, attribute = question
        measured = tuple(sorted(rows, key=_mildest))
        found.append(Curve(task, model, defense, goal, attribute, measured))
    return found


def _rows(every: Sequence[Result]) -> list[Result]:
    """One row for each training of equal parameters.

    It is measured where strong attacks met it, then where its cost compares, then where most seeds are. Of its
    circumstances there, the one that leaks most counts, with its cost. Few attacks are no advantage: if it leaks more
    elsewhere, or if the strongest attack on another training did not run on this one, that leakage counts here as well.
    """
    trainings = grouped(every, lambda row: row.setting.offer)
    found = []
    for rows in trainings.values():
        rows = [row for row in rows if not row.is_weakly_attacked] or rows
        where = max(map(_evidence, rows))
        priced = max((row for row in rows if _evidence(row) == where), key=_leaks)
        counted = rows
        if len(trainings) > 1:
            ran = frozenset[tuple[str, int]]().union(*(row.attacks for row in rows))
            strong = (row for row in every if not row.is_weakly_attacked)
            counted = [row for row in strong if (row.attack, row.attack_version) not in ran]
            counted += rows
        most = max(counted, key=_leaks)
        is_more = _leaks(most)[0] > _leaks(priced)[0]
        found.append(priced.with_leakage_of(most) if is_more else priced)
    return found


def _evidence(row: Result) -> tuple[bool, bool, int, str]:
    """How well a setting was measured, and where."""
    seeds = len(row.setting.seeds)
    return row.has_comparable_cost, row.is_certified, seeds, row.setting.group


def _leaks(row: Result) -> tuple[float, tuple[str, ...]]:
    """Order by leakage; equal ones by their keys, and not by the order of the records."""
    return round(row.leakage.value, 9) if row.is_certified else -inf, row.setting.keys


def joint_results(rows: Iterable[Result], goals: Sequence[Goal]) -> list[Result]:
    """One row for each setting of a defense that is made against all of the goals; its goal is the first of them."""
    asked = (row for row in rows if row.goal in goals and goals_of(row.defense).issuperset(goals))
    return [
        most_leaking(own, goals[0])
        for own in grouped(asked, lambda row: id(row.setting)).values()
        if len({row.goal for row in own}) == len(goals)
    ]


def _mildest(row: Result) -> tuple[float, float]:
    leak, cost = row.leakage.value, row.cost.value
    return (-leak if row.is_certified else inf, cost if row.has_cost else inf)


def _cross_fitted(
    settings: Sequence[Result],
    score: Callable[[float, float], float],
    number: Literal["leakage", "cost"],
) -> Summary:
    """For each seed, chooses the setting with the smallest score on the other seeds, and reports its number on this one.

    A setting whose score is infinite does not qualify.
    Done on the seeds that all settings share. If these are fewer than two, the setting is chosen on all of its own.
    """
    shared = set.intersection(*map(_seeds, settings)) if settings else set[int]()
    if len(shared) < 2:
        overall = _choose(settings, score, None)
        note = SELF_CHOSEN if len(settings) > 1 else ""
        return Summary(getattr(overall, number), overall, note) if overall else NEVER
    alike = [row if _seeds(row) == shared else row.on(shared) for row in settings]
    index = {id(row): setting for row, setting in zip(alike, settings, strict=True)}
    overall = _choose(alike, score, shared)
    if overall is None:
        return NEVER
    chosen = {seed: _choose(alike, score, shared - {seed}) or overall for seed in sorted(shared)}
    values = [getattr(row, f"{number}_by_seed")[seed] for seed, row in chosen.items()]
    return Summary(mean_interval(values), index[id(overall)])


def _seeds(row: Result) -> set[int]:
    return {*row.leakage_by_seed} & {*row.cost_by_seed}


def _choose(
    settings: Sequence[Result],
    score: Callable[[float, float], float],
    seeds: Collection[int] | None,
) -> Result | None:
    """The setting with the smallest score of its mean leakage and cost on the seeds; None for all seeds.

    Of equal ones, the key decides, and not the order of the records.
    """

    def value(row: Result) -> float:
        if seeds is None:
            return score(row.leakage.value, row.cost.value)
        by_seed = row.leakage_by_seed, row.cost_by_seed
        return score(*(fmean(own[seed] for seed in seeds) for own in by_seed))

    counted = (row for row in settings if value(row) < inf)
    return min(counted, key=lambda row: (value(row), row.setting.keys), default=None)
