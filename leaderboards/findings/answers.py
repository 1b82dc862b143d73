"""The first findings: least leakage within a budget, cost of halving the leakage, and tasks without a working attack."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

from leakboard.bench.contracts import Goal
from leakboard.leaderboards.findings.finding import Finding, listing, task_name
from leakboard.leaderboards.tables import (
    BUDGET,
    GOAL_WORDS,
    Interval,
    Result,
    ResultsTable,
    Summary,
    choose,
    curves,
    format_interval,
    format_percent,
    format_points,
)

MUCH = 0.5
"""A defense that hides more than this share within the budget gets a separate sentence."""


def headlines(table: ResultsTable) -> Iterator[Finding]:
    """Findings for each goal about settings within the budget; tasks with little effect share one."""
    within = f"at a cost of at most {BUDGET:g} points, no defense"
    for goal in Goal:
        own, word = table.select(goal=goal), GOAL_WORDS[goal]
        tasks = dict.fromkeys(row.setting.task for row in own)
        choices = [choose(own, task, goal.value) for task in tasks]
        little = [choice for choice in choices if choice and 1 - choice.leakage.value <= MUCH]
        if little:
            best = min(little, key=lambda choice: choice.leakage.value)
            rows = [choice.setting for choice in [best, *little] if choice.setting]
            words = (
                f"{within} hides more than {format_percent(1 - best.leakage.value)} of {word} on "
                f"{listing(task_name(choice.task) for choice in little)} (best: {rows[0].name})."
            )
            yield Finding.of("headlines", words, "leakage", best.leakage, rows)
        for choice in choices:
            row, near, where = choice.setting, choice.nearest, f"{word} on {task_name(choice.task)}"
            if row and choice not in little:
                words = (
                    f"{row.name} hides {format_percent(1 - choice.leakage.value)} of {where}, for "
                    f"{_cost(row, row.cost)} ({_ends(row.cost)})."
                )
                yield Finding.of("headlines", words, "leakage", choice.leakage, [row])
            elif near:
                words = (
                    f"{within} clearly hides {where}: the cheapest that does, {near.name}, costs "
                    f"{_cost(near, near.cost)}."
                )
                yield Finding.of("headlines", words, "cost", near.cost, [near])


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


def halving(table: ResultsTable) -> Iterator[Finding]:
    """Findings for each goal and task about the smallest cost of hiding half, if it is above the budget."""
    order = list(Goal)
    least = least_cost_of_halving(table)
    for goal, task in sorted(least, key=lambda where: (order.index(where[0]), where[1])):
        cost, row = least[goal, task].value, least[goal, task].setting
        if row is None or cost.value <= BUDGET:
            continue
        words = (
            f"Hiding half of {GOAL_WORDS[goal]} on {task_name(task)} costs {_cost(row, cost)} "
            f"({row.name}; {_ends(cost)})."
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
        yield Finding.of("idle", words, "advantage", most.advantage, [most, *rows])


def _cost(of: Result, cost: Interval) -> str:
    return f"{format_points(cost.value)} {of.setting.unit}"


def _ends(cost: Interval) -> str:
    return f"95 % CI {format_points(cost.low)} to {format_points(cost.high)}"
