"""Code shared by figures: lines of one defense, names of settings, and parts of captions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isnan

from leakboard.bench.contracts import Goal, LeakboardError
from leakboard.bench.records import canonical_json
from leakboard.leaderboards.findings import task_name
from leakboard.leaderboards.rendering import LINES, Point, Series
from leakboard.leaderboards.tables import (
    GOAL_WORDS,
    Curve,
    Interval,
    Result,
    ResultsTable,
    count,
    curves,
    format_parameter,
    format_parameters,
    goal_of,
    style_of,
    varying_names,
)

LONG = 10
"""Length from which the name of a knob is in the legend instead of next to its points."""
VARIANT_MARKERS = "osD^vP<X>"
"""Markers of further variants of a defense."""
LEAKAGE_WORDS = (
    "Leakage is the share of what attacks read without the defense that they still read with it."
)
ToPoint = Callable[[Result], tuple[Interval, Interval] | None]
_ResultAt = tuple[Result, tuple[Interval, Interval]]


@dataclass(frozen=True)
class Place:
    """Task, model and attribute of a panel."""

    task: str
    model: str
    attribute: str = ""

    @property
    def title(self) -> str:
        return " · ".join(filter(None, [task_name(self.task), self.model, self.attribute]))


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
    made = [curve for curve in every if curve.results[0].is_made_for_goal]
    found: dict[Place, list[Curve]] = {}
    for curve in made or every:
        found.setdefault(Place(curve.task, curve.model, curve.attribute), []).append(curve)
    return found


def lines(curve: Curve, to_point: ToPoint) -> list[Series]:
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
    variants: dict[tuple[int, str], dict[object, list[_ResultAt]]] = {}
    for one, at in shown:
        params = json.loads(one.setting.params)
        rest = canonical_json({k: v for k, v in params.items() if k != name})
        trainings = variants.setdefault((one.setting.cut, rest), {})
        trainings.setdefault(one.setting.offer[-1], []).append((one, at))
    others = [each for each in VARIANT_MARKERS if each != how.marker]
    found = []
    for place, ((cut, rest), trainings) in enumerate(
        sorted(variants.items(), key=lambda item: item[0])
    ):
        words = [format_parameters(rest, varying), f"cut = {cut}" if several else ""]
        words = [", ".join(filter(None, words))] if len(variants) > 1 else []
        if name is not None and len(format_parameter(name, 1)) >= LONG - 2:
            words.append(f"by {name.replace('_', ' ')}")
        title = f"{curve.title} ({'; '.join(words)})" if any(words) else curve.title
        marker = how.marker if not place else others[(place - 1) % len(others)]
        for own in trainings.values():
            own.sort(key=lambda of: (isnan(of[0].setting.knob_value), of[0].setting.knob_value))
            points = [
                Point(*at, _label(one, name, n in (0, len(own) - 1)), one.name)
                for n, (one, at) in enumerate(own)
            ]
            line = LINES[place % len(LINES)] if len(own) > 1 else ""
            found.append(Series(title, points, how.colour, marker, line, group=curve.title))
    return found


def leakage_and_utility(one: Result) -> tuple[Interval, Interval] | None:
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


def setting_names(results: Iterable[Result]) -> dict[tuple[object, ...], str]:
    """Distinct names of settings, by `place_of`."""
    found: dict[tuple[object, ...], str] = {}
    for one in results:
        name = one.name
        if name in found.values() and place_of(one) not in found:
            name = f"{name} (cut {one.setting.cut})"
        found.setdefault(place_of(one), name)
    return found


def place_of(one: Result) -> tuple[object, ...]:
    """Identity of a setting."""
    setting = one.setting
    return setting.group, setting.defense, setting.params, setting.cut, setting.setup


def measured_words(results: Sequence[Result]) -> str:
    """'Measured on minilm, at most 1,000 examples per split, 3 seeds, with 95 % intervals.'"""
    models = ", ".join(dict.fromkeys(one.setting.model for one in results))
    conditions = list(dict.fromkeys(one.setting.conditions for one in results))
    if len(conditions) == 1 and conditions[0]:
        about = conditions[0]
    else:
        numbers = sorted({len(one.setting.seeds) for one in results})
        least = f"{numbers[0]} to " if len(numbers) > 1 else ""
        about = f"{least}{count(numbers[-1], 'seed')}"
    return f"Measured on {models}, {about}, with 95 % intervals."
