"""Utility against empirical privacy, with the points that a paper prints: for suites that mirror one."""

from __future__ import annotations

import json
from collections.abc import Iterator

from leakboard.bench.contracts import LeakboardError, grouped
from leakboard.bench.records import Row
from leakboard.leaderboards.figures.drawing import Request
from leakboard.leaderboards.figures.series import (
    Numbers,
    Place,
    curves_by_place,
    lines,
    measured_words,
    printed_rows,
    printed_series,
    requested_goal,
)
from leakboard.leaderboards.rendering import Axis, Panel, Plot, Point, Reference, Series
from leakboard.leaderboards.tables import (
    GOAL_WORDS,
    STRONGEST,
    Group,
    Interval,
    RecordSet,
    Result,
    format_parameter,
    results_under,
)


def plots(found: RecordSet, request: Request) -> Iterator[tuple[str, Plot]]:
    """Utility (up) against EP = 1 − success (right), with hollow markers for the paper.

    Raises:
        LeakboardError: the suite mirrors no paper, or no setting has a share as its success, and a utility.
    """
    paper = found.suite.paper if found.suite else None
    if paper is None:
        raise LeakboardError(
            "nothing to plot: these records belong to no suite that mirrors a paper"
        )
    table = results_under(found.table, request.attack)
    goal = requested_goal(table, request.goal)
    known = printed_rows(found, goal)
    stated = [row for row in known if row["utility"] == row["utility"] and row["ep"] == row["ep"]]
    theirs = grouped(stated, lambda row: row["task"])
    panels, drawn = [], list[Result]()
    for place, own in curves_by_place(table, goal).items():
        series = [line for curve in own for line in lines(curve, _point)]
        if not series:
            continue
        results = [one for curve in own for one in curve.results if _point(one)]
        drawn += results
        group = next(g for g in table.groups if results[0].setting in g.settings)
        hollow = printed_series(theirs.get(place.task, []), _printed_point)
        panels.append(_panel(place, [*series, *hollow], results[0], group))
    if not panels:
        raise LeakboardError(
            f"nothing to plot: no setting has both a utility and the success of an attack on {GOAL_WORDS[goal]}"
        )
    source = f"{paper.paper}, {', '.join(paper.artefact)}"
    models = ", ".join(dict.fromkeys(str(row["model"]) for row in known)) or "its own models"
    caption = (
        f"Empirical privacy (EP): 1 − success of the attack, as {source} has it. {measured_words(drawn)} Hollow: as "
        f"printed, for {models} and the paper's own data: compare the shapes, not the values. {paper.note}"
    )
    title = f"{GOAL_WORDS[goal].capitalize()}: {source}, and our measurements"
    by = "" if request.attack == STRONGEST else f"-{request.attack}"
    plot = Plot(title, panels, caption.strip(), columns=min(2, len(panels)))
    yield f"{GOAL_WORDS[goal]}{by}-printed", plot


def _panel(place: Place, series: list[Series], first: Result, group: Group) -> Panel:
    levels = [Reference("x", 1 - first.chance, "guessing")]
    if group.reference is not None:
        levels.append(Reference("y", group.reference.utility.value, "undefended", line="dashed"))
    if group.untuned is not None:
        levels.append(Reference("y", group.untuned.utility.value, "untuned model", line="dashdot"))
    x = Axis(f"empirical privacy of {GOAL_WORDS[first.goal]} →", -0.03, 1.03)
    return Panel(place.title, x, Axis(f"{first.setting.metric} →"), series, levels, height=2.8)


def _point(one: Result) -> Numbers | None:
    if one.setting.utility.is_missing or not 0 <= one.success.value <= 1 or one.ceiling > 1:
        return None
    value, low, high = one.success.ends
    return Interval(1 - value, 1 - high, 1 - low).clipped(), one.setting.utility


def _printed_point(row: Row, name: str | None) -> Point:
    params = json.loads(row["params"])
    label = format_parameter(name, params[name]) if name in params else ""  # type: ignore[arg-type]
    return Point.of(float(row["ep"]), float(row["utility"]), label.rpartition("= ")[2])
