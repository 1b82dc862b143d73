"""A defense's curve against one goal, its two summaries, and the choice of a setting within a budget."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean
from typing import Literal

from leakboard.bench.contracts import Goal, LeakboardError, did_you_mean, grouped, notebook_html
from leakboard.leaderboards.tables.defenses import display_name, goals_of
from leakboard.leaderboards.tables.goals import GOAL_WORDS, goals_asked
from leakboard.leaderboards.tables.intervals import (
    MISSING,
    Interval,
    count,
    format_interval,
    format_number,
    format_percent,
    format_percent_interval,
    format_points,
    mean_interval,
)
from leakboard.leaderboards.tables.results import BUDGET, Result, most_leaking
from leakboard.leaderboards.tables.settings import NOT_REPRODUCED

HALF = 0.5
ALIKE = 0.01
"""Leakages that differ by less are equal where a setting is chosen."""
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
    """The summary with the smallest number of those with a setting; `NEVER` if none has one."""
    known = (one for one in summaries if one.setting is not None)
    return min(known, key=lambda one: one.value.value, default=NEVER)


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
        return [row for row in self.certified if not row.reason_without_rank]

    def leakage_within(self, budget: float = BUDGET) -> Summary:
        """The least leakage of a setting that costs at most `budget` points and keeps something of what tuning gains."""
        worth = [row for row in self.priced if row.is_worth_a_budget]
        return _cross_fitted(worth, lambda leak, cost: leak if cost <= budget else inf, "leakage")

    def cost_of_halving(self) -> Summary:
        """The least cost of a measured setting that leaks at most half; missing means never."""
        return _cross_fitted(self.priced, lambda leak, cost: cost if leak <= HALF else inf, "cost")


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


@dataclass(frozen=True)
class Choice:
    """The setting with the least leakage within a budget, and its evidence; true if there is one.

    Attributes:
        setting: certified setting of a defense made for the goal, with clearly less leakage than without protection
            and a mean cost within the budget; None if there is none.
        leakage: leakage of that setting, cross-fitted over seeds.
        nearest: if there is no setting, the cheapest one that clearly reduces leakage, if any.
        front: settings that clearly reduce leakage and that no other beats in leakage and cost, cheapest first.
        each: for several goals at once, the results of the shown setting for each goal.
        note: a warning where the setting was chosen on the reported numbers, or an empty string.
        others: other models on which defenses were measured.

    Examples:
        >>> import leakboard as lb
        >>> choice = lb.choose("sst2", "texts", records=lb.published("sap-sst2"))
        >>> bool(choice), choice.max_cost
        (True, 3.0)
    """

    task: str
    goal: Goal
    max_cost: float
    setting: Result | None
    leakage: Interval
    nearest: Result | None
    front: tuple[Result, ...]
    why: str
    each: tuple[Result, ...] = ()
    note: str = ""
    others: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.setting is not None

    def __str__(self) -> str:
        return self.why

    def __repr__(self) -> str:
        return "\n".join([self.why, *(f"  {name:<9} {text}" for name, text in self._evidence())])

    def _repr_html_(self) -> str:
        return notebook_html(self.why, rows=[*map(list, self._evidence())])

    def _evidence(self) -> Iterator[tuple[str, str]]:
        """Evidence for the setting: name and text of each line."""
        if row := self.setting or self.nearest:
            setting = row.setting
            yield "setting", row.name
            about = f" ({row.attribute})" if row.attribute else ""
            leakage = self.leakage if self.setting else row.leakage
            yield "leakage", f"{format_percent_interval(leakage)}{about}"
            yield (
                "attack",
                f"{row.attack_title}: {row.metric} {format_interval(row.success)}; "
                f"{format_interval(row.twin_success)} without the defense; guessing {format_number(row.baseline)}",
            )
            yield "cost", cost_words(row)
            yield (
                "measured",
                f"{setting.model}, cut {setting.cut}, {setting.conditions}; of this setting "
                f"{count(len(setting.seeds), 'seed')} and {count(setting.trials, 'trial')} of tuning",
            )
            if setting.claim_note:
                yield "claim", setting.claim_note
            more = f" and {len(setting.keys) - 3} more" if len(setting.keys) > 3 else ""
            yield "records", f"{', '.join(setting.keys[:3])}{more}"
        for row in self.each:
            success = f"{row.metric} {format_interval(row.success)}"
            leak = format_percent_interval(row.leakage)
            yield GOAL_WORDS[row.goal], f"{leak} by {row.attack_title}: {success}"
        if self.note:
            yield "chosen", self.note.removeprefix("chosen ")
        if self.others:
            yield "models", f"also measured with {', '.join(self.others)}; ask with `model`"


def choose(
    table: Iterable[Result],
    task: str,
    hide: str,
    max_cost: float = BUDGET,
    model: str | None = None,
) -> Choice:
    """The setting that leaks least within a budget, among certified settings of defenses made for the goal.

    Of settings whose leakages differ by less than one percent, it is the cheapest.

    Args:
        hide: a goal by any of its names, see `leakboard.leaderboards.tables.goals`, or several: 'texts and labels'. Of
            several, the goal counts of which a setting leaks most.
        max_cost: points of utility that may be lost on the mean.
        model: only settings of this model; by default of the one with costs on which most defenses were measured.

    Raises:
        LeakboardError: an unknown task, model or goal, or a budget that is no number of points.
    """
    rows = list(table)
    goals = goals_asked(hide)
    goal = goals[0]
    check_budget(max_cost)
    tasks = dict.fromkeys(row.setting.task for row in rows)
    if task not in tasks:
        raise LeakboardError(f"task: no records of '{task}'. {did_you_mean(str(task), tasks)}")
    models = dict.fromkeys(row.setting.model for row in rows if row.setting.task == task)
    if model is not None and model not in models:
        raise LeakboardError(
            f"model: no records of '{model}' on {task}. {did_you_mean(model, models)}"
        )
    every = [
        curve
        for curve in curves(joint_results(rows, goals) if len(goals) > 1 else rows)
        if (curve.task, curve.goal) == (task, goal) and model in (None, curve.model)
    ]
    by_model = grouped(every, lambda curve: curve.model)
    used = max(sorted(by_model), key=lambda name: _measured(by_model[name]), default="")
    answering = by_model.get(used, [])
    word = " and ".join(GOAL_WORDS[goal] for goal in goals)
    made = [curve for curve in answering if curve.is_made_for_goal]
    settings = [row for curve in made for row in curve.results]
    certified = [row for row in settings if row.is_certified]
    priced = [row for curve in made for row in curve.priced]
    front = pareto([row for row in priced if row.clearly_reduces_leakage])
    within = [curve.leakage_within(max_cost) for curve in made]
    best = smallest(s for s in within if s.setting and s.setting.clearly_reduces_leakage)
    if best.setting is not None:
        best = _cheapest_like(
            best, [r for r in front if r.cost.value <= max_cost and r.is_worth_a_budget]
        )
    unit = settings[0].setting.unit if settings else "points"
    nearest = None
    if best.setting is not None:
        why = (
            f"{best.setting.name} leaks {format_percent_interval(best.value)} of what is read "
            f"without it, for {cost_words(best.setting)}"
        )
    elif not settings:
        why = f"no {f'defense made for {word}' if answering else f'attack on {word}'} was measured"
    elif not certified:
        known = (row for row in settings if not row.twin_advantage.is_missing)
        most = max(known, key=lambda row: row.twin_advantage.value, default=settings[0])
        why = f"not certified; {most.reason}"
    elif not priced:
        reasons = dict.fromkeys(row.reason_without_rank for row in certified)
        why = f"no setting has a cost that may be compared: {'; '.join(reasons)}"
    elif not front:
        why = "no setting clearly reduces leakage"
    else:
        nearest = front[0]
        learns = " and still learns" * (nearest.cost.value <= max_cost)
        why = (
            f"no setting within the budget clearly reduces leakage{learns}. The cheapest that does is {nearest.name}: "
            f"{format_percent(nearest.leakage.value)} for {cost_words(nearest)}"
        )
    shown = best.setting or nearest
    each = (
        tuple(row for row in rows if row.setting is shown.setting and row.goal in goals)
        if shown and len(goals) > 1
        else ()
    )
    others = tuple(name for name in by_model if name != used)
    where = f"{task} with {used}" if others else task
    why = f"{word.capitalize()} of {where}, at most {max_cost:g} {unit}: {why}."
    found = best.setting, best.value, nearest, front, why, each, best.note, others
    return Choice(task, goal, max_cost, *found)


def cost_words(row: Result) -> str:
    """'1.6 [0.8, 2.4] of the 35.5 points gained'."""
    gain = format_points(row.gain)
    return f"{format_interval(row.cost, 1)} of the {gain} {row.setting.unit} gained"


def _measured(own: Sequence[Curve]) -> tuple[bool, int]:
    """Whether a defense made for the goal has costs on a model, and how many were measured."""
    made = [curve for curve in own if curve.is_made_for_goal]
    return any(curve.priced for curve in made), len(made)


def _cheapest_like(best: Summary, front: Sequence[Result]) -> Summary:
    """The cheapest setting of the front that leaks about as much as the chosen one."""
    assert best.setting is not None
    most = best.setting.leakage.value + ALIKE
    first = next((row for row in front if row.leakage.value < most), best.setting)
    return best if first is best.setting else Summary(first.leakage, first, best.note)


def pareto(settings: Sequence[Result]) -> tuple[Result, ...]:
    """Settings that no other beats in both leakage and cost, cheapest first."""

    def is_beaten(row: Result) -> bool:
        mine = (row.leakage.value, row.cost.value)
        theirs = ((other.leakage.value, other.cost.value) for other in settings)
        return any(t != mine and t[0] <= mine[0] and t[1] <= mine[1] for t in theirs)

    def order(row: Result) -> tuple[float, float, tuple[str, ...]]:
        return row.cost.value, row.leakage.value, row.setting.keys

    return tuple(sorted((row for row in settings if not is_beaten(row)), key=order))


def check_budget(points: object) -> None:
    """Raises LeakboardError unless `points` is a number from 0 to 100."""
    if isinstance(points, bool) or not isinstance(points, int | float) or not 0 <= points <= 100:
        raise LeakboardError(
            "budget: expected points of utility from 0 to 100, such as 3 for an accuracy that falls from "
            f"0.85 to 0.82, got {points!r}"
        )
