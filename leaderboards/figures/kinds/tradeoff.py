"""Leakage against cost, or both against a parameter that was swept."""

from __future__ import annotations

from collections.abc import Iterator

from leakboard.bench.contracts import Goal, LeakboardError
from leakboard.leaderboards.figures.drawing import Request
from leakboard.leaderboards.figures.series import (
    Place,
    asked_goal,
    curves_by_place,
    defense_names,
    lines,
    measured_words,
)
from leakboard.leaderboards.figures.sweep import sweep
from leakboard.leaderboards.rendering import (
    GREY,
    Axis,
    Panel,
    Plot,
    Point,
    Reference,
    Series,
    exact,
)
from leakboard.leaderboards.tables import (
    BUDGET,
    GOAL_WORDS,
    STRONGEST,
    Curve,
    Interval,
    RecordSet,
    Result,
    ResultsTable,
    decided_by,
)


def plots(found: RecordSet, request: Request) -> Iterator[tuple[str, Plot]]:
    """Leakage against cost; with `against` leakage and utility along a parameter."""
    if request.against is not None:
        goal = asked_goal(found.table, request.goal)
        name = f"{GOAL_WORDS[goal]}{_by(request)}-by-{request.against}"
        yield name, sweep(found, goal, request.against, request.attack)
        return
    table = decided_by(found.table, request.attack)
    goal = asked_goal(table, request.goal)
    yield f"{GOAL_WORDS[goal]}{_by(request)}", tradeoff(table, goal)


def _by(request: Request) -> str:
    return "" if request.attack == STRONGEST else f"-{request.attack}"


def tradeoff(table: ResultsTable, goal: Goal) -> Plot:
    """Points of utility lost (down) against leakage (right), a panel for each task, model and attribute.

    Settings that are not certified, or have no cost that may be compared, are named in the caption.

    Raises:
        LeakboardError: there is no such setting at all.
    """
    places = curves_by_place(table, goal)
    word = GOAL_WORDS[goal]
    panels = [_panel(place, own, word) for place, own in places.items()]
    shown = [panel for panel in panels if len(panel.series) > 1]
    every = [curve for own in places.values() for curve in own]
    if not shown:
        raise LeakboardError(f"nothing to plot: {_why_nothing(every, word)}")
    drawn = [one for curve in every for one in curve.priced]
    caption = (
        f"Leakage: of what attacks read without the defense, the share that they still read. Cost: against no "
        f"protection at equal tuning. {measured_words(drawn)}"
    )
    hidden = [curve for curve in every if not curve.certified]
    unpriced = [curve for curve in every if curve.certified and not curve.priced]
    for what, own in (("Not certified", hidden), ("Without a comparable cost", unpriced)):
        if own:
            caption += f" {what}: {defense_names(curve.defense for curve in own)}."
    return Plot(f"Leakage of {word} and its cost", shown, caption, columns=min(2, len(shown)))


def _panel(place: Place, own: list[Curve], word: str) -> Panel:
    series = [line for curve in own for line in lines(curve, _point)]
    points = [point.y for line in series for point in line.points]
    most = max([BUDGET, *(cost.value for cost in points)])
    # A wide interval may run off the panel: it would squeeze the points flat.
    high = min(
        max([most, *(cost.high for cost in points if cost.high == cost.high)]), 1.4 * most + 1
    )
    low = max(min([0.0, *(cost.low for cost in points if cost.low == cost.low)]), -0.4 * most - 1)
    open_ = Series("undefended", [Point(exact(1.0), exact(0.0))], GREY, "*")
    return Panel(
        place.title,
        Axis(f"← leakage of {word}", -0.03, 1.06, percent=True),
        Axis("points of utility lost", low - 0.06 * most, high + 0.06 * most, rises=False),
        [*series, open_],
        [Reference("y", BUDGET, f"budget of {BUDGET:g} points", line="dashed")],
        height=2.8,
    )


def _point(one: Result) -> tuple[Interval, Interval] | None:
    if not (one.is_certified and one.has_cost and one.is_equally_tuned):
        return None
    return one.leakage.clipped(), one.cost


def _why_nothing(every: list[Curve], word: str) -> str:
    if not every:
        return (
            f"no attack on {word} read anything; 'leakboard show' lists what failed or was skipped"
        )
    certified = [curve for curve in every if curve.certified]
    if not certified:
        return f"not certified; {every[0].results[0].reason}"
    one = certified[0].certified[0]
    return f"no setting has a cost that may be compared; {one.cost_reason or 'it was not tuned like no protection'}"
