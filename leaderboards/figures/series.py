"""Code shared by figures: lines of one defense, names of settings, and parts of captions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan

from leakboard.bench.contracts import Goal, LeakboardError, grouped
from leakboard.bench.records import Row, rows_of
from leakboard.leaderboards.findings import task_name
from leakboard.leaderboards.rendering import LINES, Axis, Point, Series
from leakboard.leaderboards.tables import (
    GOAL_WORDS,
    Curve,
    Interval,
    RecordSet,
    Result,
    ResultsTable,
    count,
    curves,
    display_name,
    format_parameter,
    format_parameters,
    goal_of,
    knob_of,
    other_params,
    style_of,
    varying_names,
)

LONG = 10
"""Length from which the name of a knob is in the legend instead of next to its points."""
VARIANT_MARKERS = "osD^vP<X>"
"""Markers of further variants of a defense."""
Numbers = tuple[Interval, Interval]
"""Both numbers of a point: x and y."""


@dataclass(frozen=True)
class Place:
    """Task, model and attribute of a panel."""

    task: str
    model: str
    attribute: str = ""

    @classmethod
    def of(cls, one: Result) -> Place:
        return cls(one.setting.task, one.setting.model, one.attribute)

    @property
    def title(self) -> str:
        attribute = self.attribute.replace("_", " ")
        return " · ".join(filter(None, [task_name(self.task), self.model, attribute]))


def requested_goal(table: ResultsTable, word: str | None) -> Goal:
    """The requested goal, by default the first one with a measured defense that is made for it.

    Raises:
        LeakboardError: an unknown goal, or no attack.
    """
    if word is not None:
        return goal_of(word)
    if not table:
        raise LeakboardError(
            "nothing to plot: no attack read anything; 'leakboard show' lists what failed or was "
            "skipped, and why"
        )
    made = {one.goal for one in table if one.is_made_for_goal and one.is_certified}
    known = made or {one.goal for one in table}
    return next(goal for goal in GOAL_WORDS if goal in known)


def curves_by_place(table: ResultsTable, goal: Goal) -> dict[Place, list[Curve]]:
    """Curves of defenses made for a goal, or of all defenses if none is."""
    every = [curve for curve in curves(table) if curve.goal == goal]
    made = [curve for curve in every if curve.is_made_for_goal]
    return grouped(made or every, lambda curve: Place.of(curve.results[0]))


def row_axis(names: Sequence[str], shared: bool = True) -> Axis:
    """A vertical axis with a row for each name, the first on top."""
    ticks = [(float(n), name) for n, name in enumerate(names)]
    return Axis("", -0.6, len(names) - 0.4, ticks, rises=False, shared=shared)


def row_points(settings: Sequence[Result], values: Iterable[Interval]) -> Iterator[Series]:
    """The value of each setting in its row of `row_axis`, where there is one."""
    for n, (one, value) in enumerate(zip(settings, values, strict=True)):
        if not value.is_missing:
            how = style_of(one.defense)
            yield Series("", [Point.of(value, float(n), detail=one.name)], how.colour, how.marker)


def lines(curve: Curve, to_point: Callable[[Result], Numbers | None]) -> list[Series]:
    """Lines of a defense along its knob: one joins settings of equal parameters, cut and training.

    Variants of parameters or cuts have names and line styles of their own, equal in all panels. Settings that differ only in training share
    these, and no line joins them.

    Args:
        to_point: function from a setting to x and y, or None to leave it out.
    """
    how, name = style_of(curve.defense), curve.results[0].setting.knob or None
    shown = [(one, at) for one in curve.results if (at := to_point(one)) is not None]
    varying = varying_names([one.setting.params for one, _ in shown], but=name)
    several = len({one.setting.cut for one, _ in shown}) > 1
    variants = grouped(
        shown, lambda of: (of[0].setting.cut, other_params(of[0].setting.params, name))
    )
    others = [each for each in VARIANT_MARKERS if each != how.marker]
    found = []
    for place, (cut, rest) in enumerate(sorted(variants)):
        words = [format_parameters(rest, varying), f"cut = {cut}" if several else ""]
        words = [", ".join(filter(None, words))] if len(variants) > 1 else []
        if name is not None and len(format_parameter(name, 1)) >= LONG - 2:
            words.append(f"by {name.replace('_', ' ')}")
        title = f"{curve.title} ({'; '.join(words)})" if any(words) else curve.title
        marker = others[(place - 1) % len(others)] if place else how.marker
        for own in grouped(variants[cut, rest], lambda of: of[0].setting.offer[-1]).values():
            own.sort(key=lambda of: (isnan(of[0].setting.knob_value), of[0].setting.knob_value))
            points = [
                Point(*at, _label(one, name, n in (0, len(own) - 1)), one.name)
                for n, (one, at) in enumerate(own)
            ]
            line = LINES[place % len(LINES)] if len(own) > 1 else ""
            found.append(Series(title, points, how.colour, marker, line, group=curve.title))
    return found


def leakage_and_utility(one: Result) -> Numbers | None:
    """The point of a certified setting with a utility."""
    if not one.is_certified or one.setting.utility.is_missing:
        return None
    return one.leakage.clipped(), one.setting.utility


def _label(one: Result, name: str | None, is_end: bool) -> str:
    """Name and value of the knob at the ends of a line; only its value between them."""
    params = json.loads(one.setting.params)
    if name is None or name not in params:
        return ""
    text = format_parameter(name, params[name])
    return text if is_end and len(text) < LONG else text.rpartition("= ")[2]


def printed_rows(found: RecordSet, goal: Goal) -> list[Row]:
    """The points that the mirrored paper prints about a goal."""
    rows = [] if found.printed is None else rows_of(found.printed)
    return [row for row in rows if row["goal"] == goal]


def printed_series(
    rows: Iterable[Row], to_point: Callable[[Row, str | None], Point], along: str | None = None
) -> Iterator[Series]:
    """A hollow line for each defense, model and variant of a paper; its styles start anew for each defense.

    Args:
        to_point: function from a printed row and the parameter along which the line runs to a point.
        along: the parameter that varies within a line; by default the knob of each defense.
    """
    for defense, own in grouped(rows, lambda row: str(row["defense"])).items():
        how, group = style_of(defense), display_name(defense)
        params = [row["params"] for row in own]
        knob = along or knob_of(defense, params)
        varying = varying_names(params, but=knob)
        by_rest = grouped(own, lambda row: (row["model"], other_params(row["params"], knob)))  # noqa: B023
        for n, ((_, rest), same) in enumerate(by_rest.items()):
            words = format_parameters(rest, varying)
            title = f"{group}{f' ({words})' if words else ''}, as printed"
            points = [to_point(row, knob) for row in same]
            line = ("dashed", *LINES[1:])[n % 4] if len(points) > 1 else ""
            yield Series(title, points, how.colour, how.marker, line, hollow=True, group=group)


def measured_words(results: Sequence[Result]) -> str:
    """'Measured on minilm, at most 1,000 examples per split, 3 seeds, with 95 % intervals.'"""
    models = ", ".join(dict.fromkeys(one.setting.model for one in results))
    about, *others = dict.fromkeys(one.setting.conditions for one in results)
    if others or not about:
        numbers = sorted({len(one.setting.seeds) for one in results})
        least = f"{numbers[0]} to " if len(numbers) > 1 else ""
        about = f"{least}{count(numbers[-1], 'seed')}"
    return f"Measured on {models}, {about}, with 95 % intervals."
