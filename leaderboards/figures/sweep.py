"""Leakage and utility along one swept parameter: the cut, or a parameter of training, defense or attack."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

from leakboard.bench.contracts import Goal, Leak, LeakboardError, did_you_mean, grouped
from leakboard.bench.records import ALIKE, Row
from leakboard.leaderboards.figures.series import (
    Place,
    measured_words,
    printed_rows,
    printed_series,
)
from leakboard.leaderboards.findings import task_name
from leakboard.leaderboards.rendering import LINES, Axis, Panel, Plot, Point, Reference, Series
from leakboard.leaderboards.tables import (
    GOAL_WORDS,
    LEAKAGE_WORDS,
    MISSING,
    PALETTE,
    STRONGEST,
    Interval,
    RecordSet,
    Result,
    ResultsTable,
    display_name,
    format_parameter,
    format_parameters,
    results_under,
    style_of,
    text_of,
    varying_names,
)

AXES = {
    "cut": "blocks below the cut",
    "labelled": "labelled share",
    "limit": "examples per split",
    "epochs": "epochs",
    "sentences": "public texts to learn from",
}
OF_CELL = ("cut", "limit")
LOG_FROM = 20
"""Ratio of the largest to the smallest value from which an axis is logarithmic."""


@dataclass(frozen=True)
class Swept:
    """A result at one value of the parameter; `name` of the line on which it lies."""

    x: Any
    name: str
    result: Result


def sweep(found: RecordSet, goal: Goal, against: str, attack: str = STRONGEST) -> Plot:
    """Leakage and utility along a parameter; for parameters of attacks, only their success.

    Numbers of the mirrored paper follow each task, if the paper has the same sweep.

    Raises:
        LeakboardError: no such parameter, or no result of this goal.
    """
    table = found.table.select(goal=goal)
    of_settings = {*OF_CELL, *(name for one in table for name in _values(one))}
    of_attacks = {name for leak in _leaks(table) for name in leak.attack.params}
    known = sorted(of_settings | of_attacks)
    if against not in known:
        raise LeakboardError(
            f"against: no parameter '{against}' is in the records. {did_you_mean(against, known)}"
        )
    of_attack = against not in of_settings
    if of_attack:
        swept = list(_by_attack(table, goal, against, attack))
    else:
        swept = list(_by_setting(results_under(table, attack).select(goal=goal), against))
    if not swept:
        raise LeakboardError(f"nothing to plot: no attack on {GOAL_WORDS[goal]} read anything")
    colours = _colours(swept)
    panels: list[Panel] = []
    for place, own in grouped(swept, lambda one: Place.of(one.result)).items():
        for quantity in ("success",) if of_attack else ("leakage", "utility"):
            panels.append(_panel(place.title, own, against, colours, quantity))
        if not of_attack:
            panels += _printed(found, goal, place.task, against)
    title = f"{GOAL_WORDS[goal].capitalize()} along {_axis_name(against)}"
    caption = measured_words([one.result for one in swept])
    if not of_attack:
        caption = f"{LEAKAGE_WORDS} {caption}"
    return Plot(title, panels, caption, columns=2)


def _leaks(table: ResultsTable) -> list[Leak]:
    """Leaks of the goals of the table."""
    return [leak for one in table for leak in one.setting.leaks if leak.goal == one.goal]


def _values(one: Result) -> dict[str, Any]:
    """Values of the parameters of training, defense and cell."""
    cell = one.setting.first.cell
    of_cell = {name: getattr(cell, name) for name in OF_CELL}
    return {**cell.train.model_dump(), **json.loads(one.setting.params), **of_cell}


def _by_setting(table: ResultsTable, against: str) -> Iterator[Swept]:
    rows = [one for one in table if against in _values(one)]
    varying = {
        name: varying_names([one.setting.params for one in own], but=against)
        for name, own in grouped(rows, lambda one: one.defense).items()
    }
    cuts = len({one.setting.cut for one in rows}) > 1 and against != "cut"
    for one in rows:
        words = [
            display_name(one.defense),
            format_parameters(one.setting.params, varying[one.defense]),
            f"cut = {one.setting.cut}" if cuts else "",
        ]
        yield Swept(_values(one)[against], ", ".join(filter(None, words)), one)


def _by_attack(table: ResultsTable, goal: Goal, against: str, attack: str) -> Iterator[Swept]:
    """Points for each setting and version of an attack, and a constant line for the strongest other attack."""
    versions = {
        (leak.attack.name, text_of(leak.attack)): dict(leak.attack.params)
        for leak in _leaks(table)
        if attack in (STRONGEST, leak.attack.name)
    }
    swept = {name: own for name, own in versions.items() if against in own}
    varying = varying_names(
        [json.dumps(params, default=str) for params in swept.values()], but=against
    )
    defenses = len({one.setting.label for one in table}) > 1
    for (name, text), params in swept.items():
        of_version = table.under(lambda c, name=name, text=text: c[:2] == (name, text))  # type: ignore[misc]
        for one in of_version.select(goal=goal):
            words = [
                one.name if defenses else "",
                name,
                format_parameters(json.dumps(params, default=str), varying),
            ]
            yield Swept(params[against], ", ".join(filter(None, words)), one)
    others = {name for name, _ in versions} | {one.attack for one in table}
    others -= {name for name, _ in swept}
    if others and attack == STRONGEST:
        for one in table.under(lambda c: c[0] in others).select(goal=goal):
            for x in dict.fromkeys(params[against] for params in swept.values()):
                yield Swept(x, ", ".join([*([one.name] if defenses else []), "other attacks"]), one)


def _panel(
    title: str, own: Sequence[Swept], against: str, colours: dict[str, str], quantity: str
) -> Panel:
    place, axis = _axis([one.x for one in own], against)
    first = own[0].result
    if quantity == "leakage":
        high = Axis(f"leakage of {GOAL_WORDS[first.goal]}", -0.03, 1.06, percent=True)
        lines = [Reference("y", 1.0, "undefended")]
    elif quantity == "success":
        high = Axis(f"success ({first.metric})")
        lines = [Reference("y", first.baseline, "guessing")]
    else:
        high, lines = Axis(first.setting.metric), []

    def number(one: Result) -> Interval:
        if quantity == "leakage":
            return one.leakage.clipped() if one.is_certified else MISSING
        return one.success if quantity == "success" else one.setting.utility

    def training(one: Swept) -> str:
        """All training settings but the swept one."""
        return one.result.setting.first.cell.train.model_dump_json(exclude={*ALIKE, against})

    series = []
    for n, (name, same) in enumerate(grouped(own, lambda one: one.name).items()):
        # A line joins only results of equal training but for the swept setting.
        for line in grouped(same, training).values():
            points = [
                Point.of(place[one.x], y, detail=one.result.name)
                for one in sorted(line, key=lambda one: place[one.x])
                if not (y := number(one.result)).is_missing
            ]
            dash = LINES[n % len(LINES)] if len(points) > 1 else ""
            defense = line[0].result.defense
            marker, group = style_of(defense).marker, display_name(defense)
            series.append(Series(name, points, colours[name], marker, dash, group=group))
    return Panel(title, axis, high, series, lines, height=2.4)


def _axis(xs: Sequence[Any], against: str) -> tuple[dict[Any, float], Axis]:
    """Position of each value, and the axis: numbers, then words in order, then None."""
    numbers = sorted({x for x in xs if isinstance(x, int | float)})
    words = sorted({x for x in xs if isinstance(x, str)})
    ordered: list[Any] = [*numbers, *words, *([None] if None in xs else [])]
    numeric = ordered == numbers and not any(isinstance(x, bool) for x in numbers)
    place = {x: float(x) if numeric else float(n) for n, x in enumerate(ordered)}
    log = numeric and numbers[0] > 0 and numbers[-1] >= LOG_FROM * numbers[0]
    words = ["none" if x is None else f"{x:g}" if isinstance(x, float) else str(x) for x in place]
    ticks = [*zip(place.values(), words, strict=True)]
    return place, Axis(_axis_name(against), ticks=ticks, log=log)


def _axis_name(against: str) -> str:
    return AXES.get(
        against, format_parameter(against, "").rstrip(" =") or against.replace("_", " ")
    )


def _colours(swept: Sequence[Swept]) -> dict[str, str]:
    """Colour of each line: that of its defense if each defense has one line."""
    names = {one.name: one.result.defense for one in swept}
    if len(set(names.values())) == len(names):
        return {name: style_of(defense).colour for name, defense in names.items()}
    return {name: PALETTE[n % len(PALETTE)] for n, name in enumerate(names)}


def _printed(found: RecordSet, goal: Goal, task: str, against: str) -> Iterator[Panel]:
    """Panels of the mirrored paper's EP and utility along the same parameter, with hollow markers."""
    key = "split" if against == "cut" else against  # as papers call it

    def swept(row: Row) -> Any:
        return json.loads(row["params"])[key]

    rows = [one for one in printed_rows(found, goal) if one["task"] == task]
    rows = [one for one in rows if key in json.loads(one["params"])]
    rows.sort(key=_source)
    for source, own in grouped(rows, _source).items():
        place, axis = _axis([swept(row) for row in own], against)
        if len(place) < 2:
            continue
        for name, label, limits in (
            ("ep", "empirical privacy (printed)", (-0.03, 1.03)),
            ("utility", "utility (printed)", (None, None)),
        ):
            hollow = printed_series(
                [row for row in own if not isnan(row[name])],
                lambda row, _: Point.of(place[swept(row)], float(row[name])),  # noqa: B023
                key,
            )
            series = [
                replace(one, colour=PALETTE[n % len(PALETTE)], line="dashed")
                for n, one in enumerate(hollow)
            ]
            title = f"{task_name(task)} · {source}"
            yield Panel(title, axis, Axis(label, *limits), series, height=2.4)


def _source(row: Row) -> str:
    return f"{row['paper']}, {row['artefact']}, {row['model']}"
