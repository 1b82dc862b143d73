"""Success of attacks against the number of times that a text is sent with fresh noise, beside the composed guarantee."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from leakboard.bench.contracts import LeakboardError, grouped
from leakboard.leaderboards.figures.drawing import Request
from leakboard.leaderboards.figures.series import Place, measured_words
from leakboard.leaderboards.rendering import LINES, Axis, Panel, Plot, Point, Reference, Series
from leakboard.leaderboards.tables import (
    GOAL_WORDS,
    RecordSet,
    Result,
    display_name,
    format_parameter,
    goal_of,
    results_under,
    style_of,
)

FRESH = {"bottom": "trainable", "encoder": "trained"}
"""Parameters with which each epoch sends every text with fresh noise."""
KNOBS = {"epsilon_per_dimension": "epsilon", "eta": "eta"}
"""Parameter of a claim about one message, and the parameter of the defense that it follows."""


@dataclass(frozen=True)
class Sent:
    """A result after some sends; `parameter` is that of the guarantee of one message."""

    result: Result
    sends: int
    parameter: float
    name: str


def plots(found: RecordSet, request: Request) -> Iterator[tuple[str, Plot]]:
    """One figure for each goal: success, and the parameter of the guarantee summed over all sends."""
    table = results_under(found.table, request.attack)
    goals = [goal_of(request.goal)] if request.goal else dict.fromkeys(one.goal for one in table)
    drawn = 0
    for goal in goals:
        sent = [one for result in table.select(goal=goal) if (one := sent_of(result))]
        places = grouped(sent, lambda one: Place.of(one.result))
        panels = [panel for place, own in places.items() for panel in _panels(place, own)]
        if panels:
            drawn += 1
            title = f"{GOAL_WORDS[goal].capitalize()} after several messages about a text"
            caption = (
                "Right: the guarantees of all messages, which add up: ε of a dimension, or η. The smaller, the more is "
                f"promised. {measured_words([one.result for own in places.values() for one in own])}"
            )
            yield f"{GOAL_WORDS[goal]}-by-sends", Plot(title, panels, caption)
    if not drawn:
        raise LeakboardError(
            "nothing to plot: no defense with a guarantee per message sent texts different numbers of times; "
            "the suite 'repeated-sends' does"
        )


def sent_of(one: Result) -> Sent | None:
    """The number of sends of a setting and its guarantee; None without a guarantee per message."""
    record, params = one.setting.first, json.loads(one.setting.params)
    claimed = record.claim.parameters if record.claim else {}
    name = next((name for name in KNOBS if name in claimed), None)
    if name is None:
        return None
    fresh = any(params.get(key) == value for key, value in FRESH.items())
    label = f"{display_name(one.defense)}, {format_parameter(KNOBS[name], claimed[name])}"
    return Sent(one, record.cell.train.epochs if fresh else 1, claimed[name], label)


def _panels(place: Place, own: list[Sent]) -> Iterator[Panel]:
    """Both panels, with a line for each defense that was measured for several numbers of sends."""
    every = grouped(sorted(own, key=lambda one: one.sends), lambda one: one.name)
    by_line = {name: line for name, line in every.items() if len({one.sends for one in line}) > 1}
    if not by_line:
        return
    success, composed = list[Series](), list[Series]()
    for n, (name, line) in enumerate(by_line.items()):
        style = style_of(line[0].result.defense)
        look = style.colour, style.marker, LINES[n % len(LINES)]
        read = [Point.of(one.sends, one.result.success.clipped()) for one in line]
        total = [Point.of(one.sends, one.sends * one.parameter) for one in line]
        success.append(Series(name, read, *look))
        composed.append(Series(name, total, *look))
    first = next(iter(by_line.values()))[0].result
    chances = grouped(by_line, lambda name: round(by_line[name][0].result.baseline, 3))
    counts = sorted({one.sends for line in by_line.values() for one in line})
    x = Axis("messages about a text", ticks=[(float(n), str(n)) for n in counts], log=True)
    guessing = [
        Reference(
            "y", chance, "guessing" if len(chances) == 1 else f"guessing ({', '.join(names)})"
        )
        for chance, names in chances.items()
    ]
    yield Panel(place.title, x, Axis(f"success ({first.metric})", -0.03, 1.03), success, guessing)
    yield Panel(f"{place.title} · guarantee", x, Axis("ε or η of all messages", log=True), composed)
