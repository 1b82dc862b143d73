"""Advice from the results of one task: settings within a budget, and next steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from leakboard.bench.contracts import Goal
from leakboard.leaderboards.rendering import Cell, Table, columns, in_unit, leakage_cell
from leakboard.leaderboards.tables import (
    GOAL_WORDS,
    HALF,
    NEVER,
    Choice,
    Result,
    Summary,
    choose,
    curves,
    format_interval,
    format_number,
    format_percent,
    format_percent_interval,
)

LEAKAGE_HELP = "Share of what attacks read without the defense that they still read with it"
FEW = 3
"""Largest number of settings per goal in the table."""
SINGULAR: dict[Goal, str] = {
    Goal.MODEL: "the model",
    Goal.REIDENTIFICATION: "identity",
    Goal.MEMBERSHIP: "membership",
}
"""Goals whose object is one thing, as it is called after a verb."""


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
    def word(self) -> str:
        return GOAL_WORDS[self.choice.goal]

    @property
    def helps(self) -> str:
        """A sentence about the chosen setting, or the reason why there is none."""
        one, budget = self.choice.setting, f"{self.choice.max_cost:g}"
        if one is None:
            return self.choice.why
        unit = one.setting.unit
        left = format_percent_interval(self.choice.leakage)
        cost = format_interval(one.cost, 1)
        if self.choice.leakage.value > HALF:
            return (
                f"{self.word.capitalize()}: nothing within {budget} {unit} halves the leakage. The least is {left}, "
                f"with {one.name}, for {cost} {unit}."
            )
        return f"{self.word.capitalize()}: {one.name} reduces leakage to {left}, for {cost} {unit}."

    @property
    def next_step(self) -> str:
        """Recommendation in one sentence."""
        goal, one, half = self.choice.goal, self.choice.setting, self.halving.setting
        word = SINGULAR.get(goal, self.word)
        pronoun, possessive = ("it", "its") if goal in SINGULAR else ("them", "their")
        if one is not None and self.choice.leakage.value <= HALF:
            return f"To hide {word}, use {one.name}, and measure it on your own data before you rely on it."
        if half is not None:
            return (
                f"To hide {word}, accept a cost of {format_interval(self.halving.value, 1)} {half.setting.unit} ({half.name} leaks "
                f"{format_percent(half.leakage.value)}), or {self._otherwise}."
            )
        if not self.is_certified:
            return f"Nothing is known about {word}: measure {pronoun} on your own data before you decide."
        return f"Do not rely on a defense to hide {word}: no measured setting halves {possessive} leakage at a known cost."

    @property
    def _otherwise(self) -> str:
        """What one can do without a defense."""
        if self.choice.goal is Goal.MODEL:
            return "do not hand it out"
        if self.choice.goal in SINGULAR:
            return "keep the texts in question out of the training"
        return "keep them out of the training"


def advice_on(
    rows: Sequence[Result], task: str, goals: Iterable[Goal], budget: float
) -> list[Advice]:
    """Advice for each of the goals, from results of one task."""
    every, found = curves(rows), []
    for goal in dict.fromkeys(goals):
        own = [curve for curve in every if curve.goal == goal and curve.is_made_for_goal]
        halving = [s for curve in own if (s := curve.cost_of_halving()).setting is not None]
        least = min(halving, key=lambda summary: summary.value.value, default=NEVER)
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
            Cell(item.word),
            leakage_cell(one.leakage),
            Cell(format_number(one.cost.value, 1), format_interval(one.cost, 1).partition(" ")[2]),
            Cell(
                f"{one.metric} {format_number(one.success.value)}",
                f"{one.attack}; undefended {format_number(one.twin_success.value)}, guessing {format_number(one.baseline)}",
            ),
        ]
        for item, one in listed
    ]
    names = columns("setting", "hides", "leakage", ">points lost", "strongest attack")
    heads = in_unit(names, listed[0][1].setting.unit)
    heads[2] = replace(heads[2], help=LEAKAGE_HELP)
    return Table("Settings that clearly reduce leakage", heads, rows)


def _listed_settings(choice: Choice) -> list[Result]:
    chosen = [choice.setting] if choice.setting else []
    wanted = [*chosen, *choice.front[:1], *choice.front[-1:]]
    every = [*choice.front, *chosen]
    return [one for n, one in enumerate(every) if one in wanted and one not in every[:n]][:FEW]
