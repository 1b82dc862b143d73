"""Answer of a run, an attack or an audit in three lines: what is read, what helps within a budget, how sure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from leakboard.bench.contracts import Goal, grouped
from leakboard.leaderboards.findings import listing
from leakboard.leaderboards.tables import (
    BUDGET,
    GOAL_WORDS,
    HALF,
    Choice,
    Result,
    choose,
    cost_words,
    count,
    curves,
    display_name,
    format_interval,
    format_number,
    format_percent,
    undefended_row,
)

MOST = 4
"""Pairs of a goal and a task in one line; the boards have the rest."""
READ, HELPS, SURE = "What is read:", "What helps:", "How sure:"
"""First words of the lines, which are the same after each command."""


def ending(table: Iterable[Result], budget: float = BUDGET) -> list[str]:
    """Three lines on the goals for which a defense of the table is made; none if there is no such goal.

    The first also names what else defenses give away.
    """
    rows = list(table)
    asked = questions(rows)
    if not asked:
        return []
    shown = asked[:MOST]
    more = [f"and {count(len(asked) - MOST, 'more goal')}"] if len(asked) > MOST else []
    several = len({task for _, task in shown}) > 1
    read, sure = [], []
    for goal, task in shown:
        twin = undefended_row(r for r in rows if (r.goal, r.setting.task) == (goal, task))
        name = _name(goal, task, several)
        if twin is None:
            read.append(f"{name}: not measured without a defense")
        elif not twin.is_certified:
            read.append(f"{name}: not certified")
        else:
            read.append(
                f"{name}: {twin.metric} {format_interval(twin.success)} (baseline {format_number(twin.baseline)}; {twin.attack})"
            )
            sure.append(twin.setting.conditions)
    return [
        f"{READ} without a defense, {'; '.join(read + more)}.{_given_away(rows)}",
        helps(rows, shown, budget),
        f"{SURE} {_sureness(sure)}",
    ]


def questions(rows: Sequence[Result]) -> list[tuple[Goal, str]]:
    """Goals and tasks for which a defense in the rows is made."""
    made = {(curve.goal, curve.task) for curve in curves(rows) if curve.is_made_for_goal}
    order = list(GOAL_WORDS)
    return sorted(made, key=lambda one: (order.index(one[0]), one[1]))


def helps(rows: Sequence[Result], asked: Sequence[tuple[Goal, str]], budget: float = BUDGET) -> str:
    """The line on what helps within the budget."""
    several = len({task for _, task in asked}) > 1
    found = [
        f"{_name(goal, task, several)}: {_choice(choose(rows, task, GOAL_WORDS[goal], budget))}"
        for goal, task in asked
    ]
    return f"{HELPS} within {budget:g} points, {'; '.join(found)}."


def _given_away(rows: Iterable[Result]) -> str:
    """' Also leaked: labels (SAP).': most of what defenses made for other goals do not hide, at any setting."""
    asked = [row for row in rows if not (row.is_baseline or row.is_made_for_goal)]
    leaking = [
        own[0]
        for own in grouped(asked, lambda row: (row.goal, row.defense)).values()
        if all(row.leakage.low > HALF for row in own)
    ]
    found = []
    for goal, own in grouped(leaking, lambda row: row.goal).items():
        names = [display_name(row.defense) for row in own]
        if len(names) > MOST:
            names[MOST:] = [f"{len(names) - MOST} more"]
        found.append(f"{GOAL_WORDS[goal]} ({listing(names)})")
    return f" Also leaked: {', '.join(found)}." if found else ""


def _choice(choice: Choice) -> str:
    row = choice.setting or choice.nearest
    if row is None:
        return "no setting is known to help"
    leakage = choice.leakage.value if choice.setting else row.leakage.value
    cost = f"for {cost_words(row)}"
    if choice.setting is None:
        return f"nothing (the cheapest that helps: {row.name}, {format_percent(leakage)} {cost})"
    if leakage > HALF:
        return f"nothing halves it (least: {row.name}, {format_percent(leakage)} {cost})"
    return f"{row.name} leaves {format_percent(leakage)} {cost}"


def _sureness(conditions: Sequence[str]) -> str:
    if not conditions:
        return "no attack is clearly shown to work, so nothing follows."
    first = conditions[0] or "one setting"
    words = (
        f"{first}; intervals cover 95 %." if len(set(conditions)) == 1 else f"{first}, at least."
    )
    return f"{words} An attack that succeeds proves leakage; an attack that fails does not prove privacy."


def _name(goal: Goal, task: str, several: bool) -> str:
    return f"{GOAL_WORDS[goal]} of {task}" if several else GOAL_WORDS[goal]
