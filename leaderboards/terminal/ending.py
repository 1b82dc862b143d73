"""Summary of a run in a few lines."""

from __future__ import annotations

from collections.abc import Iterable

from leakboard.leaderboards.tables import BUDGET, GOAL_WORDS, Result, choose, count, curves

MOST = 4
"""Lines; the boards have the rest."""


def ending(table: Iterable[Result], budget: float = BUDGET) -> list[str]:
    """For each task and goal for which a defense is made: the best setting within the budget, or why there is none."""
    rows = list(table)
    questions = {
        (curve.goal, curve.task): None
        for curve in curves(rows)
        if curve.results[0].is_made_for_goal
    }
    order = list(GOAL_WORDS)
    lines = [
        str(choose(rows, task, GOAL_WORDS[goal], budget))
        for goal, task in sorted(questions, key=lambda one: order.index(one[0]))
    ]
    more = len(lines) - MOST
    return lines[:MOST] + ([f"and {count(more, 'more line')} of this kind"] if more > 0 else [])
