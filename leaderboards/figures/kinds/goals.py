"""Leakage of all goals and cost of each defense."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leakboard.bench.contracts import Goal, LeakboardError
from leakboard.leaderboards.figures.drawing import Request
from leakboard.leaderboards.figures.series import LEAKAGE_WORDS, measured_words
from leakboard.leaderboards.rendering import Axis, Panel, Plot, Point, Reference, Series, exact
from leakboard.leaderboards.tables import (
    BUDGET,
    GOAL_WORDS,
    Interval,
    RecordSet,
    Result,
    ResultsTable,
    curves,
    rankings,
    results_under,
    style_of,
)

ROW, HEAD = 0.19, 0.75
"""Height of a setting, and of title and axis, in inches."""
Choice = tuple[object, ...]


def plots(found: RecordSet, request: Request) -> Iterator[tuple[str, Plot]]:
    """One figure for each task and model on which defenses were compared."""
    drawn = goals(results_under(found.table, request.attack))
    for (task, model), plot in drawn.items():
        yield "goals" if len(drawn) == 1 else f"goals-{task}-{model}", plot


def goals(table: ResultsTable, budget: float = BUDGET) -> dict[tuple[str, str], Plot]:
    """Cost and leakage of each goal by task and model, one row per defense at the setting of its ranking.

    Raises:
        LeakboardError: no defense has a setting with a comparable cost.
    """
    same: dict[Choice, dict[tuple[Goal, str], Result]] = {}
    for curve in curves(table):
        for one in curve.results:
            same.setdefault(one.setting.offer, {})[one.goal, one.attribute] = one
    chosen: dict[tuple[str, str], dict[Choice, Result]] = {}
    for ranking in rankings(table, budget):
        for entry in [*ranking.within, *ranking.ineffective, *ranking.over]:
            own = chosen.setdefault((ranking.task, ranking.model), {})
            own.setdefault(entry.setting.setting.offer, entry.setting)
    if not chosen:
        raise LeakboardError(
            "nothing to plot: no defense was measured with a cost that may be compared, against a goal for which it "
            "is made"
        )
    return {
        (task, model): _plot(task, model, list(own.values()), same, budget)
        for (task, model), own in chosen.items()
    }


def _plot(
    task: str,
    model: str,
    settings: Sequence[Result],
    same: dict[Choice, dict[tuple[Goal, str], Result]],
    budget: float,
) -> Plot:
    rows = [same[one.setting.offer] for one in settings]
    aims = sorted(
        {aim for row in rows for aim, one in row.items() if one.is_certified},
        key=lambda aim: (list(GOAL_WORDS).index(aim[0]), aim[1]),
    )
    ticks = [(float(n), one.name) for n, one in enumerate(settings)]
    height = ROW * len(settings) + HEAD

    def panel(
        title: str,
        x: Axis,
        points: Sequence[Interval | None],
        lines: Sequence[Reference],
        first: bool,
    ) -> Panel:
        shown = [(n, at) for n, at in enumerate(points) if at is not None]
        series = [
            Series(
                "",
                [Point(at, exact(float(n)), detail=settings[n].name)],
                style_of(settings[n].defense).colour,
                style_of(settings[n].defense).marker,
            )
            for n, at in shown
        ]
        y = Axis(
            "",
            -0.6,
            len(settings) - 0.4,
            ticks,
            rises=False,
            shared=True,
        )
        return Panel(title, x, y, series, lines, height=height, weight=0.5 if first else 0.36)

    costs: list[Interval | None] = [one.cost if one.has_cost else None for one in settings]
    panels = [
        panel(
            "cost",
            Axis("points lost"),
            costs,
            [Reference("x", budget, f"budget of {budget:g} points", line="dashed")],
            True,
        )
    ]
    for goal, attribute in aims:
        own = [row.get((goal, attribute)) for row in rows]
        points = [one.leakage.clipped() if one and one.is_certified else None for one in own]
        title = GOAL_WORDS[goal] + (f"\n{attribute}" if attribute else "")
        halves = [(0.0, "0"), (0.5, "50"), (1.0, "100")]
        panels.append(panel(title, Axis("leakage, %", -0.06, 1.06, halves), points, (), False))
    caption = (
        f"{LEAKAGE_WORDS} Each defense has one setting: the one with the least leakage of its goal within the budget, or "
        f"the cheapest. Without a point, no attack on the goal is certified. {measured_words(settings)}"
    )
    return Plot(
        f"Leakage and cost of defenses: {task}, {model}",
        panels,
        caption,
        columns=len(panels),
    )
