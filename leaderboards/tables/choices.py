"""The choice of a setting within a budget, with its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from leakboard.bench.contracts import Goal, LeakboardError, did_you_mean, grouped, notebook_html
from leakboard.leaderboards.tables.compare import compare
from leakboard.leaderboards.tables.curves import Curve, Summary, curves, joint_results, smallest
from leakboard.leaderboards.tables.goals import GOAL_WORDS, goals_asked
from leakboard.leaderboards.tables.intervals import (
    Interval,
    count,
    format_interval,
    format_number,
    format_percent,
    format_percent_interval,
    format_points,
)
from leakboard.leaderboards.tables.result import BUDGET, Result

ALIKE = 0.01
"""Leakages that differ by less are equal where a setting is chosen."""


@dataclass(frozen=True)
class Choice:
    """The setting with the least leakage within a budget, and its evidence; true if there is one.

    Attributes:
        setting: certified setting of a defense made for the goal, with clearly less leakage than without protection
            and a mean cost within the budget; None if there is none.
        leakage: leakage of that setting, cross-fitted over seeds.
        nearest: if there is no setting, the cheapest one that clearly reduces leakage, if any.
        front: settings that clearly reduce leakage and that no other beats in leakage and cost, cheapest first.
        equals: settings of other defenses within the budget that leak as much and whose costs do not clearly differ.
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
    equals: tuple[Result, ...] = ()
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

    @property
    def names(self) -> str:
        """The chosen setting and those that measurements do not distinguish from it: 'SAP, η = 110, or RAPT, η = 110'."""
        chosen = (row.setting.choice for row in (self.setting, *self.equals) if row is not None)
        return ", or ".join(dict.fromkeys(chosen))

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
                f"{format_interval(row.twin_success)} without the defense; baseline {format_number(row.baseline)}",
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
        if self.equals:
            yield "equals", "; ".join(f"{row.name}: {cost_words(row)}" for row in self.equals)
        if self.note:
            yield "chosen", self.note.removeprefix("chosen ")
        if self.others:
            yield (
                "models",
                f"also measured with {', '.join(self.others)} (`--model`, in Python `model=`)",
            )


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
    helpful = [row for row in priced if row.clearly_reduces_leakage]
    front = pareto(helpful)
    within = [curve.leakage_within(max_cost) for curve in made]
    best = smallest(s for s in within if s.setting and s.setting.clearly_reduces_leakage)
    equals = tuple[Result, ...]()
    if best.setting is not None:
        helpful = [row for row in helpful if row.cost.value <= max_cost and row.still_learns]
        best = _cheapest_like(best, pareto(helpful))
        equals = equal_settings(best.setting, helpful) if best.setting else ()
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
        # One within the budget was passed over, since it keeps less than a fifth of what tuning gains.
        is_cheap = nearest.cost.value <= max_cost
        learns, does = (" and still learns", "reduces it") if is_cheap else ("", "does")
        why = (
            f"no setting within the budget clearly reduces leakage{learns}. The cheapest that {does} is "
            f"{nearest.name}: {format_percent(nearest.leakage.value)} for {cost_words(nearest)}"
        )
    shown = best.setting or nearest
    each = (
        tuple(row for row in rows if row.setting is shown.setting and row.goal in goals)
        if shown and len(goals) > 1
        else ()
    )
    others = tuple(name for name in by_model if name != used)
    where = f"{task} with {used}" if others else task
    limit = "1 point" if max_cost == 1 and unit == "points" else f"{max_cost:g} {unit}"
    why = f"{word.capitalize()} of {where}, at most {limit}: {why}."
    found = best.setting, best.value, nearest, front, why, equals, each, best.note, others
    return Choice(task, goal, max_cost, *found)


def cost_words(row: Result) -> str:
    """'1.6 [0.8, 2.4] of the 35.3 points gained'."""
    gain = format_points(row.gain.value)
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


def equal_settings(chosen: Result, others: Sequence[Result]) -> tuple[Result, ...]:
    """Settings of other defenses that leak about as much as the chosen one, and cost neither clearly more nor less."""
    leak = chosen.leakage.value
    near = [row for row in others if abs(row.leakage.value - leak) < ALIKE]
    gaps = [compare(row, chosen, "cost") for row in near if row.defense != chosen.defense]
    return tuple(gap.a for gap in gaps if not gap.reason and not gap.is_clear)


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
