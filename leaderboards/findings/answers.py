"""The answers that stand first: what a budget buys, what halving costs, and where no attack works."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

from leakboard.bench.contracts import Goal
from leakboard.leaderboards.findings.finding import Finding, as_sentence, listing, task_name
from leakboard.leaderboards.tables.curves import BUDGET, Choice, choose, curves
from leakboard.leaderboards.tables.goals import GOAL_WORDS
from leakboard.leaderboards.tables.intervals import (
    format_interval,
    format_number,
    format_percent,
    format_points,
)
from leakboard.leaderboards.tables.results import ResultsTable

MUCH = 0.5
"""A defense that hides more than this share within the budget has a sentence of its own."""


def headlines(table: ResultsTable, budget: float = BUDGET) -> Iterator[Finding]:
    """For each goal what defenses hide at a cost of at most `budget` points.

    Tasks on which little is hidden share a sentence; so do those on which nothing is.
    """
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
        f"{task_name(one.task)}, for {_points(one.setting.cost.value)} "
        f"(95 % CI {format_points(one.setting.cost.low)} to {format_points(one.setting.cost.high)})."
    )
    return Finding.of("headlines", as_sentence(words), "leakage", one.leakage, [one.setting])


def _beyond(one: Choice) -> Finding:
    near = one.nearest
    assert near is not None
    words = (
        f"at a cost of at most {one.max_cost:g} points, no defense clearly hides {GOAL_WORDS[one.goal]} on "
        f"{task_name(one.task)}: the cheapest that does, {near.name}, costs {_points(near.cost.value)}."
    )
    return Finding.of("headlines", as_sentence(words), "cost", near.cost, [near])


def halving(table: ResultsTable, budget: float = BUDGET) -> Iterator[Finding]:
    """For each goal and task the least cost of a setting that leaks at most half of what is read without it."""
    least: dict[tuple[Goal, str], Finding] = {}
    for curve in curves(table):
        summary = curve.cost_of_halving()
        best = least.get((curve.goal, curve.task))
        row = summary.setting
        # What the budget affords is a headline already.
        if row is None or not row.is_made_for_goal or summary.value.value <= budget:
            continue
        if best is not None and best.value.value <= summary.value.value:
            continue
        words = (
            f"Hiding half of {GOAL_WORDS[curve.goal]} on {task_name(curve.task)} costs at least "
            f"{_points(summary.value.value)} of utility ({row.name}; "
            f"95 % CI {format_points(summary.value.low)} to {format_points(summary.value.high)})."
        )
        found = Finding.of("halving", words, "cost", summary.value, [row])
        least[curve.goal, curve.task] = found
    order = list(Goal)
    yield from (least[where] for where in sorted(least, key=lambda w: (order.index(w[0]), w[1])))


def idle(table: ResultsTable) -> Iterator[Finding]:
    """For each goal the tasks on which no attack works even without a defense, so that none is judged there."""
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


def _points(value: float) -> str:
    return f"{format_number(value, 1)} points"
