"""The first findings: least leakage within a budget, cost of halving the leakage, and tasks without a working attack."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

from leakboard.bench.contracts import Goal
from leakboard.leaderboards.findings.finding import Finding, listing, task_name
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
        little = [choice for choice in choices if choice and 1 - choice.leakage.value <= MUCH]
        if little:
            yield _little(little)
        for choice in choices:
            if choice and 1 - choice.leakage.value > MUCH:
                yield _much(choice)
            elif choice.nearest is not None:
                yield _beyond(choice)


def _little(choices: list[Choice]) -> Finding:
    best = min(choices, key=lambda choice: choice.leakage.value)
    assert best.setting is not None
    word = GOAL_WORDS[best.goal]
    words = (
        f"at a cost of at most {best.max_cost:g} points, no defense hides more than "
        f"{format_percent(1 - best.leakage.value)} of {word} on "
        f"{listing(task_name(choice.task) for choice in choices)} (best: {best.setting.name})."
    )
    rows = [choice.setting for choice in [best, *choices] if choice.setting is not None]
    return Finding.of("headlines", words, "leakage", best.leakage, rows)


def _much(choice: Choice) -> Finding:
    assert choice.setting is not None
    words = (
        f"{choice.setting.name} hides {format_percent(1 - choice.leakage.value)} of {GOAL_WORDS[choice.goal]} on "
        f"{task_name(choice.task)}, for {_cost(choice.setting, choice.setting.cost.value)} "
        f"(95 % CI {format_points(choice.setting.cost.low)} to {format_points(choice.setting.cost.high)})."
    )
    return Finding.of("headlines", words, "leakage", choice.leakage, [choice.setting])


def _beyond(choice: Choice) -> Finding:
    near = choice.nearest
    assert near is not None
    words = (
        f"at a cost of at most {choice.max_cost:g} points, no defense clearly hides {GOAL_WORDS[choice.goal]} on "
        f"{task_name(choice.task)}: the cheapest that does, {near.name}, costs {_cost(near, near.cost.value)}."
    )
    return Finding.of("headlines", words, "cost", near.cost, [near])


def least_cost_of_halving(table: ResultsTable) -> dict[tuple[Goal, str], Summary]:
    """The cheapest setting that leaks at most half, of a defense made for the goal, by goal and task."""
    least: dict[tuple[Goal, str], Summary] = {}
    for curve in curves(table):
        summary, where = curve.cost_of_halving(), (curve.goal, curve.task)
        if summary.setting is None or not summary.setting.is_made_for_goal:
            continue
        if where not in least or summary.value.value < least[where].value.value:
            least[where] = summary
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
        yield Finding.of("idle", words, "advantage", most.advantage, [most, *rest])


def _cost(of: Result, value: float) -> str:
    return f"{format_number(value, 1)} {of.setting.unit}"
