"""Leakage against cost, or leakage and utility along a swept parameter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan

from leakboard.bench.contracts import Goal, LeakboardError, grouped
from leakboard.leaderboards.figures.drawing import Request
from leakboard.leaderboards.figures.series import (
    Numbers,
    Place,
    curves_by_place,
    leakage_and_utility,
    lines,
    measured_words,
    requested_goal,
)
from leakboard.leaderboards.figures.sweep import sweep
from leakboard.leaderboards.findings import task_name
from leakboard.leaderboards.rendering import GREY, Axis, Panel, Plot, Point, Reference, Series
from leakboard.leaderboards.tables import (
    BUDGET,
    GOAL_WORDS,
    LEAKAGE_WORDS,
    STRONGEST,
    Curve,
    Group,
    RecordSet,
    Result,
    ResultsTable,
    display_name,
    results_under,
)


def plots(found: RecordSet, request: Request) -> Iterator[tuple[str, Plot]]:
    """Leakage against cost; with `against` leakage and utility along a parameter."""
    suffix = "" if request.attack == STRONGEST else f"-{request.attack}"
    if request.against is not None:
        goal = requested_goal(found.table, request.goal)
        name = f"{GOAL_WORDS[goal]}{suffix}-by-{request.against}"
        yield name, sweep(found, goal, request.against, request.attack)
        return
    table = results_under(found.table, request.attack)
    goal = requested_goal(table, request.goal)
    yield f"{GOAL_WORDS[goal]}{suffix}", tradeoff(table, goal)


def tradeoff(table: ResultsTable, goal: Goal) -> Plot:
    """Points of utility lost (down) against leakage (right), with a panel for each task, model and attribute.

    The caption names defenses that are not certified or have no comparable cost. If no setting has a cost, utility is
    drawn instead.

    Raises:
        LeakboardError: no setting is certified.
    """
    places = curves_by_place(table, goal)
    word = GOAL_WORDS[goal]
    every = [curve for own in places.values() for curve in own]
    certified = [curve for curve in every if curve.certified]
    if not certified:
        why = (
            f"no attack on {word} read anything; 'leakboard show' lists what failed or was skipped"
        )
        if every:
            why = f"not certified; {every[0].results[0].reason}"
        raise LeakboardError(f"nothing to plot: {why}")
    priced = [curve for curve in every if curve.priced]
    drawn = [one for curve in priced for one in curve.priced]
    caption = f"{LEAKAGE_WORDS} "
    if priced:
        panels = [_costs(place, own, word) for place, own in places.items()]
        caption += f"Cost: against no protection at equal tuning. {measured_words(drawn)}"
        caption += _missing("Without a comparable cost", [c for c in certified if not c.priced])
    else:
        panels = [_utilities(place, own, word, table.groups) for place, own in places.items()]
        drawn = [one for curve in certified for one in curve.certified]
        why = drawn[0].reason_without_rank
        caption += f"No cost can be compared: {drawn[0].name}: {why}. {measured_words(drawn)}"
    if any(line.line for panel in panels for line in panel.series):
        caption += " Lines join settings of equal training."
    caption += _missing("Not certified", [curve for curve in every if not curve.certified])
    shown = [panel for panel in panels if len(panel.series) > 1]
    if not shown:
        raise LeakboardError("nothing to plot: no certified setting has a utility")
    title = f"Leakage of {word} and {'its cost' if priced else 'utility'}"
    return Plot(title, shown, caption, columns=min(2, len(shown)))


def _missing(words: str, curves: Sequence[Curve]) -> str:
    """' Not certified: SAP (SST-2), RAPT (SST-2, MRPC).' Or an empty string."""
    named = [
        f"{display_name(defense)} ({', '.join(dict.fromkeys(task_name(one.task) for one in own))})"
        for defense, own in grouped(curves, lambda curve: curve.defense).items()
    ]
    return f" {words}: {', '.join(named)}." if named else ""


def _costs(place: Place, own: list[Curve], word: str) -> Panel:
    series = [line for curve in own for line in lines(curve, _point)]
    points = [point.y for line in series for point in line.points]
    most = max([BUDGET, *(cost.value for cost in points)])
    # Wide intervals may exceed the panel, so that points stay distinguishable.
    highest = max([most, *(cost.high for cost in points if not isnan(cost.high))])
    lowest = min([0.0, *(cost.low for cost in points if not isnan(cost.low))])
    high, low = min(highest, 1.4 * most + 1), max(lowest, -0.4 * most - 1)
    unit = own[0].results[0].setting.unit
    y = Axis(f"{unit} of utility lost", low - 0.06 * most, high + 0.06 * most, rises=False)
    budget = Reference("y", BUDGET, f"budget of {BUDGET:g} {unit}", line="dashed")
    return Panel(place.title, _leakage(word), y, [*series, _undefended(0.0)], [budget], height=2.8)


def _utilities(place: Place, own: list[Curve], word: str, groups: Sequence[Group]) -> Panel:
    """Panel with utility instead of cost, if no cost is comparable."""
    series = [line for curve in own for line in lines(curve, leakage_and_utility)]
    settings = [one.setting for curve in own for one in curve.results]
    group = next(group for group in groups if settings[0] in group.settings)
    levels = []
    if group.untuned is not None:
        level = group.untuned.utility.value
        levels.append(Reference("y", level, "untuned model", line="dashdot"))
    if group.reference is not None and series:
        series.append(_undefended(group.reference.utility.value))
    y = Axis(f"{settings[0].metric} →")
    return Panel(place.title, _leakage(word), y, series, levels, height=2.8)


def _leakage(word: str) -> Axis:
    return Axis(f"← leakage of {word}", -0.03, 1.06, percent=True)


def _undefended(at: float) -> Series:
    return Series("undefended", [Point.of(1.0, at)], GREY, "*")


def _point(one: Result) -> Numbers | None:
    return (one.leakage.clipped(), one.cost) if one.is_priced else None
