"""Leakage of all goals and cost of each defense."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from leakboard.bench.contracts import Goal, LeakboardError, grouped
from leakboard.leaderboards.figures.drawing import Request
from leakboard.leaderboards.figures.series import (
    measured_words,
    row_axis,
    row_points,
)
from leakboard.leaderboards.rendering import Axis, Panel, Plot, Reference
from leakboard.leaderboards.tables import (
    BUDGET,
    GOAL_WORDS,
    LEAKAGE_WORDS,
    MISSING,
    Interval,
    RecordSet,
    Result,
    ResultsTable,
    curves,
    rankings,
    results_under,
)

SHARES = [(0.0, "0"), (0.5, "50"), (1.0, "100")]


def plots(found: RecordSet, request: Request) -> Iterator[tuple[str, Plot]]:
    """One figure for each task and model on which defenses were compared."""
    drawn = goals(results_under(found.table, request.attack))
    for (task, model), plot in drawn.items():
        yield "goals" if len(drawn) == 1 else f"goals-{task}-{model}", plot


def goals(table: ResultsTable) -> dict[tuple[str, str], Plot]:
    """Cost and leakage of each goal by task and model, one row per defense at the setting of its ranking.

    Raises:
        LeakboardError: no defense has a setting with a comparable cost.
    """
    entries = [entry for ranking in rankings(table) for entry in ranking.entries]
    if not entries:
        raise LeakboardError(
            "nothing to plot: no defense was measured with a comparable cost, against a goal that it is "
            "made for"
        )
    rows = [one for curve in curves(table) for one in curve.results]
    by_offer = grouped(rows, lambda one: one.setting.offer)
    places = grouped(entries, lambda entry: (entry.curve.task, entry.curve.model))
    found = {}
    for (task, model), own in places.items():
        chosen = [
            same[0].setting for same in grouped(own, lambda e: e.setting.setting.offer).values()
        ]
        leaks = [
            {(one.goal, one.attribute): one for one in by_offer[of.setting.offer]} for of in chosen
        ]
        found[task, model] = _plot(f"{task}, {model}", chosen, leaks)
    return found


def _plot(
    where: str,
    settings: Sequence[Result],
    leaks: Sequence[Mapping[tuple[Goal, str], Result]],
) -> Plot:
    """Panels of the cost and of each certified goal.

    Args:
        leaks: results of each of the settings by goal and attribute.
    """
    rows, height = row_axis([one.name for one in settings]), 0.19 * len(settings) + 0.75

    def panel(
        title: str,
        x: Axis,
        values: Sequence[Interval],
        lines: Sequence[Reference] = (),
        weight: float = 0.36,
    ) -> Panel:
        series = [*row_points(settings, values)]
        return Panel(title, x, rows, series, lines, height=height, weight=weight)

    limit = Reference("x", BUDGET, f"budget of {BUDGET:g} points", line="dashed")
    panels = [panel("cost", Axis("points lost"), [one.cost for one in settings], [limit], 0.5)]
    certified = {aim for own in leaks for aim, one in own.items() if one.is_certified}
    order = list(GOAL_WORDS)
    for goal, attribute in sorted(certified, key=lambda aim: (order.index(aim[0]), aim[1])):
        read = [own.get((goal, attribute)) for own in leaks]
        shares = [one.leakage.clipped() if one else MISSING for one in read]
        title = GOAL_WORDS[goal] + (f"\n{attribute}" if attribute else "")
        panels.append(panel(title, Axis("leakage, %", -0.06, 1.06, SHARES), shares))
    caption = (
        f"{LEAKAGE_WORDS} Each defense has one setting: the one with the least leakage of its goal within the budget, or "
        f"the cheapest. Without a point, no attack on the goal is certified. {measured_words(settings)}"
    )
    title = f"Leakage and cost of defenses: {where}"
    return Plot(title, panels, caption, columns=len(panels))
