"""What protects each thing that is read, and at which cost, as far as records show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

from leakboard.bench.contracts import Goal
from leakboard.leaderboards.report.asked import Asked
from leakboard.leaderboards.report.readings import SHARES, SUBJECTS
from leakboard.leaderboards.site import Cell, Column, Table
from leakboard.leaderboards.tables import HIDES, Choice, Comparison, Evidence, Range, choose, look

MOST = 3
"""Settings for each thing; the front has the rest."""
CALLED = {goal: name for name, goal in HIDES.items()}


@dataclass(frozen=True)
class Protection:
    """What was found to protect.

    Attributes:
        choices: for each goal the choice within the budget, or why there is none.
        table: the settings that are shown to help.
    """

    task: str
    choices: dict[Goal, Choice]
    table: Table

    @property
    def evidence(self) -> list[Evidence]:
        """All that stands in the table."""
        return [one for choice in self.choices.values() for one in _shown(choice)]

    @property
    def sentences(self) -> list[str]:
        """For each goal what hides it best within the budget, or why nothing does."""
        return [_sentence(goal, choice) for goal, choice in self.choices.items()]


def protection(compared: Sequence[Comparison], asked: Asked, goals: Sequence[Goal]) -> Protection:
    """What protects against these goals, on the task of these comparisons."""
    task = compared[0].task
    choices = {
        goal: choose(compared, task, CALLED[goal], asked.max_cost)
        for goal in dict.fromkeys(goals)
        if goal in CALLED
    }
    columns = [
        Column("to hide"),
        Column("with"),
        Column("then found", number=True),
        Column("instead of", number=True),
        Column("guessing", number=True),
        Column("points of utility lost", number=True),
        Column("how sure"),
    ]
    rows = [
        _row(one, choice, first=one is _shown(choice)[0])
        for choice in choices.values()
        for one in _shown(choice)
    ]
    notes = [f"✓: the best for at most {100 * asked.max_cost:g} points of utility."] if rows else []
    title = f"Settings that are shown to help, measured on {task}"
    return Protection(task, choices, Table("protects", title, columns, rows, notes))


def _shown(choice: Choice) -> list[Evidence]:
    """The chosen setting, the cheapest and the most private of the front, cheapest first."""
    front = choice.front
    wanted = [one for one in (choice.setting, *front[:1], *front[-1:]) if one is not None]
    return [one for one in front if any(one is other for other in wanted)][:MOST]


def _row(one: Evidence, choice: Choice, first: bool) -> list[Cell]:
    goal, leak = one.goal, one.leak
    subject = f"{SUBJECTS[goal]}: {one.attribute}" if one.attribute else SUBJECTS[goal]
    chosen = " ✓" if one is choice.setting else ""
    before = one.open.success if one.open else None
    certificate = f"{leak.attack} works without protection (certificate {one.strength:.2f})"
    return [
        Cell(subject if first else ""),
        Cell(f"{one.setting}{chosen}", f"{one.model}, cut {one.cut}", look=look(one.defense)),
        _found(leak.success, leak.metric),
        _found(before, leak.metric) if before else Cell("–"),
        Cell(_number(leak.chance, leak.metric)),
        Cell(f"{100 * one.cost.value:.1f}", _ends(one.cost, 100, ".1f")),
        Cell(certificate, f"{one.seeds} seed{'s' * (one.seeds > 1)}, {leak.n:,} examples each"),
    ]


def _found(success: Range, metric: str) -> Cell:
    share = metric in SHARES
    small = _ends(success, 100, ".0f") if share else _ends(success, 1, ".2f")
    return Cell(_number(success.value, metric), small)


def _number(value: float, metric: str) -> str:
    return f"{100 * value:.0f} %" if metric in SHARES else f"{value:.2f} {metric}"


def _ends(of: Range, scale: float, form: str) -> str:
    if isnan(of.low):
        return ""
    return f"[{format(scale * of.low, 'z' + form)}, {format(scale * of.high, 'z' + form)}]"


def _sentence(goal: Goal, choice: Choice) -> str:
    subject, best = SUBJECTS[goal], choice.setting
    points = f"{100 * choice.max_cost:g} points of utility"
    if best is not None:
        before = (
            f" instead of {_number(best.open.success.value, best.leak.metric)}" if best.open else ""
        )
        return (
            f"{subject}: for at most {points}, best hidden by {best.setting}: "
            f"{_number(best.leak.success.value, best.leak.metric)} are still found{before}, and it costs "
            f"{100 * best.cost.value:.1f} {_ends(best.cost, 100, '.1f')} points."
        )
    if choice.nearest is not None:
        cost = choice.nearest.cost
        return (
            f"{subject}: nothing helps for at most {points}; the cheapest that does is "
            f"{choice.nearest.setting}, for {100 * cost.value:.1f} {_ends(cost, 100, '.1f')} points."
        )
    return f"{subject}: nothing is recommended; {choice.why}."
