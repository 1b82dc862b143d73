"""Advice from the results of one task: settings within a budget, and next steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leakboard.bench.contracts import Goal
from leakboard.leaderboards.rendering import Cell, Table, columns, in_unit, leakage_cell
from leakboard.leaderboards.tables import (
    GOAL_WORDS,
    HALF,
    Choice,
    Result,
    Summary,
    choose,
    curves,
    format_interval,
    format_number,
    smallest,
)


@dataclass(frozen=True)
class Advice:
    """Advice for one goal.

    Attributes:
        choice: the setting within the budget, or the reason why there is none.
        halving: smallest cost of a setting that halves the leakage; its setting is None if none does.
        is_certified: True if a defense made for the goal has a certified attack.
    """

    choice: Choice
    halving: Summary
    is_certified: bool

    @property
    def is_enough(self) -> bool:
        """True if the chosen setting at least halves the leakage."""
        return self.choice.setting is not None and self.choice.leakage.value <= HALF


def advice_on(
    rows: Sequence[Result], task: str, goals: Iterable[Goal], budget: float
) -> list[Advice]:
    """Advice for each of the goals, from results of one task."""
    every, found = curves(rows), []
    for goal in dict.fromkeys(goals):
        own = [curve for curve in every if curve.goal == goal and curve.is_made_for_goal]
        least = smallest(curve.cost_of_halving() for curve in own)
        choice = choose(rows, task, GOAL_WORDS[goal], budget)
        found.append(Advice(choice, least, any(curve.certified for curve in own)))
    return found


def table_of(advice: Sequence[Advice]) -> Table | None:
    """Settings that clearly reduce leakage: the chosen one, the cheapest one, and the one that leaks least."""
    listed = [(item, one) for item in advice for one in _listed_settings(item.choice)]
    if not listed:
        return None
    rows = [
        [
            Cell(
                f"{one.name}{' (chosen)' if one is item.choice.setting else ''}", one.setting.model
            ),
            Cell(GOAL_WORDS[item.choice.goal]),
            leakage_cell(one.leakage),
            Cell(format_number(one.cost.value, 1), format_interval(one.cost, 1).partition(" ")[2]),
            Cell(
                f"{one.metric} {format_number(one.success.value)}",
                f"{one.attack}; undefended {format_number(one.twin_success.value)}, baseline {format_number(one.baseline)}",
            ),
        ]
        for item, one in listed
    ]
    names = columns("setting", "hides", "leakage", ">points lost", "strongest attack")
    heads = in_unit(names, listed[0][1].setting.unit)
    return Table("Settings that clearly reduce leakage", heads, rows)


def _listed_settings(choice: Choice) -> list[Result]:
    chosen = [choice.setting] if choice.setting else []
    wanted = [*chosen, *choice.front[:1], *choice.front[-1:]]
    every = [*choice.front, *chosen]
    return [one for n, one in enumerate(every) if one in wanted and one not in every[:n]]
