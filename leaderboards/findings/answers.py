"""The first findings: least leakage within a budget, cost of halving the leakage, and tasks without a working attack."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

from leakboard.bench.contracts import Goal
from leakboard.leaderboards.findings.finding import Finding, as_sentence, listing, task_name
from leakboard.leaderboards.tables import (
    BUDGET,
    GOAL_WORDS,
    Choice,
    Result,
    ResultsTable,
    Summary,
    choose,
    curves,
    format_interval,
    format_number,
    format_percent,
    format_points,
)

MUCH = 0.5
"""A defense that hides more than this share within the budget gets a separate sentence."""


def headlines(table: ResultsTable, budget: float = BUDGET) -> Iterator[Finding]:
    """Findings for each goal about settings that cost at most `budget` points; tasks with little effect share one."""
    for goal in Goal:
        own = table.select(goal=goal)
        tasks = dict.fromkeys(row.setting.task for row in own)
        choices = [choose(own, task, goal.value, budget) for task in tasks]
        little = [one for one in choices if one and 1 - one.leakage.value <= MUCH]
        if little:
            yield _little(little)
        for one in choices:
            if one and 1 - one.leakage.value > MUCH:
                yield _much(one)
            elif one.nearest is not None:
                yield _beyond(one)


def _little(choices: list[Choice]) -> Finding:
    best = min(choices, key=lambda one: one.leakage.value)
    assert best.setting is not None
    word = GOAL_WORDS[best.goal]
    words = (
        f"at a cost of at most {best.max_cost:g} points, no defense hides more than "
        f"{format_percent(1 - best.leakage.value)} of {word} on "
        f"{listing(task_name(one.task) for one in choices)} (best: {best.setting.name})."
    )
    rows = [one.setting for one in [best, *choices] if one.setting is not None]
    return Finding.of("headlines", as_sentence(words), "leakage", best.leakage, rows)


def _much(one: Choice) -> Finding:
    assert one.setting is not None
    words = (
        f"{one.setting.name} hides {format_percent(1 - one.leakage.value)} of {GOAL_WORDS[one.goal]} on "
        f"{task_name(one.task)}, for {_cost(one.setting, one.setting.cost.value)} "
        f"(95 % CI {format_points(one.setting.cost.low)} to {format_points(one.setting.cost.high)})."
    )
    return Finding.of("headlines", as_sentence(words), "leakage", one.leakage, [one.setting])


def _beyond(one: Choice) -> Finding:
    near = one.nearest
    assert near is not None
    words = (
        f"at a cost of at most {one.max_cost:g} points, no defense clearly hides {GOAL_WORDS[one.goal]} on "
        f"{task_name(one.task)}: the cheapest that does, {near.name}, costs {_cost(near, near.cost.value)}."
    )
    return Finding.of("headlines", as_sentence(words), "cost", near.cost, [near])


def least_cost_of_halving(table: ResultsTable) -> dict[tuple[Goal, str], Summary]:
    """The cheapest setting that leaks at most half, of a defense made for the goal, by goal and task."""
    least: dict[tuple[Goal, str], Summary] = {}
    for curve in curves(table):
        one, where = curve.cost_of_halving(), (curve.goal, curve.task)
        if one.setting is None or not one.setting.is_made_for_goal:
            continue
        if where not in least or one.value.value < least[where].value.value:
            least[where] = one
    return least


def halving(table: ResultsTable, budget: float = BUDGET) -> Iterator[Finding]:
    """Findings for each goal and task about the smallest cost of hiding half, if it is above the budget."""
    order = list(Goal)
    least = least_cost_of_halving(table)
    for goal, task in sorted(least, key=lambda where: (order.index(where[0]), where[1])):
        cost, row = least[goal, task].value, least[goal, task].setting
        if row is None or cost.value <= budget:
            continue
        words = (
            f"Hiding half of {GOAL_WORDS[goal]} on {task_name(task)} costs {_cost(row, cost.value)} "
            f"({row.name}; 95 % CI {format_points(cost.low)} to {format_points(cost.high)})."
        )
        yield Finding.of("halving", words, "cost", cost, [row])


def idle(table: ResultsTable) -> Iterator[Finding]:
    """Findings for each goal about tasks on which no attack works without a defense."""
    for goal in Goal:
        own = table.select(goal=goal)
        certified = {row.setting.task for row in own if row.is_certified}
        rows = [
            row
            for row in own
            if row.setting.undefended
            and row.setting.task not in certified
            and not isnan(row.advantage.low)
        ]
        if not rows:
            continue
        most = max(rows, key=lambda row: row.advantage.value)
        words = (
            f"no defense can be judged by {GOAL_WORDS[goal]} on {listing(task_name(r.setting.task) for r in rows)}: "
            f"without protection, the strongest attack reaches an advantage of {format_interval(most.advantage)}."
        )
        rest = [row for row in rows if row is not most]
        yield Finding.of("idle", as_sentence(words), "advantage", most.advantage, [most, *rest])


def _cost(of: Result, value: float) -> str:
    return f"{format_number(value, 1)} {of.setting.unit}"
