"""Ours beside a printed table where a knob says something else of another model: between neighbouring settings.

What hides as much here stands beside what is printed, and what lies as deep in its model. Between two
settings a straight line is taken, seed by seed; beyond the outermost nothing is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import fsum, nan
from typing import Any

import pandas as pd

from leakboard.leaderboards.tables.beside import Laid
from leakboard.leaderboards.tables.frame import Row, rows_of
from leakboard.leaderboards.tables.here import Here
from leakboard.leaderboards.tables.intervals import count
from leakboard.leaderboards.tables.means import interval
from leakboard.leaderboards.tables.parameters import format_parameter
from leakboard.leaderboards.tables.printed import printed_points
from leakboard.leaderboards.tables.styles import style_of
from leakboard.leaderboards.tables.unmeasured import BLOCKS

PLAIN = {"SAP": "Table 2"}
"""Where a paper prints utility without protection, if in another table."""


@dataclass(frozen=True)
class Point:
    """What was measured at one setting of a line, by seed."""

    x: float
    values: Mapping[int, float]
    words: str


def at(points: Sequence[Point], x: float) -> tuple[list[float], str] | None:
    """The values of a line at a place, seed by seed, and between which settings it lies; None beyond its ends.

    At its lower end lies what has no protection, which by definition loses nothing.
    """
    line = sorted(points, key=lambda point: point.x)
    for left, right in pairwise(line):
        if left.x < x <= right.x:
            share = (x - left.x) / (right.x - left.x)
            seeds = sorted(left.values.keys() & right.values.keys())
            values = [(1 - share) * left.values[s] + share * right.values[s] for s in seeds]
            return values, f"{left.words} and {right.words}"
    return None


def by_privacy(laid: Laid) -> pd.DataFrame:
    """Points of utility that each printed setting loses, beside what ours lose where they hide as much.

    Lost is against no protection: the paper's `none`, and here the same defense without its knob.

    Returns:
        One row per printed setting with both numbers: `task`, `format_parameter`, `x` (its printed EP), `printed_points`,
        `here` with `here_low` and `here_high`, NaN where it lies between no two settings, and `between`.
    """
    rows = []
    for theirs in rows_of(laid.pairs.dropna(subset=["ep_printed", "utility_printed"])):
        knob, stated = style_of(theirs["defense"]).knob, json.loads(theirs["params"])
        rest = {name: value for name, value in stated.items() if name != knob}
        plain = _undefended(laid, theirs["task"])
        if knob is None or plain is None:
            continue
        line = _losses(_line(laid, theirs, rest), knob)
        lost = 100 * (plain - theirs["utility_printed"])
        rows.append(_row(theirs, theirs["setting"], theirs["ep_printed"], lost, line))
    return pd.DataFrame(rows)


def by_depth(laid: Laid) -> pd.DataFrame:
    """EP of each printed cut without noise, beside ours as deep in its model.

    Returns:
        As `by_privacy`, `x` being the share of its blocks that the customer holds.
    """
    rows = []
    for theirs in rows_of(laid.pairs.dropna(subset=["ep_printed"])):
        knob, stated = style_of(theirs["defense"]).knob, json.loads(theirs["params"])
        if stated.get(knob, 0) is not None or laid.model not in BLOCKS or "split" not in stated:
            continue
        rest = {name: value for name, value in stated.items() if name != "split"}
        line = [
            Point(
                one.stated["split"] / BLOCKS[model], one.by_seed["ep"], f"cut {one.stated['split']}"
            )
            for one in _line(laid, theirs, rest)
            if "ep" in one.means and (model := str(one.row["model"])) in BLOCKS
        ]
        x = stated["split"] / BLOCKS[laid.model]
        words = f"cut {stated['split']} of {BLOCKS[laid.model]}"
        rows.append(_row(theirs, words, x, theirs["ep_printed"], line))
    return pd.DataFrame(rows)


def _line(laid: Laid, theirs: Row, rest: Mapping[str, Any]) -> list[Here]:
    """The settings that agree in all but one stated parameter, trained in one way: those of most values.

    Of as many those beside which printed settings stand, then those of most seeds and examples.
    """
    beside = {key for one in laid.measured["here"] for key in one.keys}
    lines: dict[tuple[str, str], list[Here]] = {}
    for one in laid.every:
        alike = (one.row["task"], one.row["defense"]) == (theirs["task"], theirs["defense"])
        if alike and all(one.stated.get(name, "") == value for name, value in rest.items()):
            lines.setdefault((one.row["shared"], one.row["setup"]), []).append(one)
    return max(
        lines.values(),
        key=lambda own: (
            sum("ep" in one.means for one in own) > 1,
            any(one.keys & beside for one in own),
            len(own),
            min(one.seeds for one in own),
            own[0].examples,
        ),
        default=[],
    )


def _undefended(laid: Laid, task: str) -> float | None:
    """The printed utility without protection."""
    if laid.paper not in PLAIN:
        return None
    rows = printed_points(laid.paper, [PLAIN[laid.paper]], laid.model)
    own = rows[(rows["task"] == task) & (rows["defense"] == "none")]["utility"]
    return float(own.iloc[0]) if len(own) else None


def _losses(line: Sequence[Here], knob: str) -> list[Point]:
    """Points of utility lost against the setting without protection, by EP."""
    twin = next((one for one in line if one.stated[knob] is None), None)
    if twin is None:
        return []
    plain = twin.by_seed["utility"]
    return [
        Point(
            one.means["ep"][0],
            {
                s: 100 * (plain[s] - value)
                for s, value in one.by_seed["utility"].items()
                if s in plain
            },
            format_parameter(knob, one.stated[knob]),
        )
        for one in line
        if "ep" in one.means
    ]


def _row(theirs: Row, words: str, x: float, value: float, line: Sequence[Point]) -> dict[str, Any]:
    found = at(line, x)
    values, between = found or ([], "")
    low, high = interval(values, nan, nan)
    mean = fsum(values) / len(values) if values else nan
    row = {"task": theirs["task"], "setting": words, "x": x, "printed": value}
    return row | {"here": mean, "here_low": low, "here_high": high, "between": between}


def outcome(rows: pd.DataFrame) -> str:
    """One sentence on them: how far ours lie from what is printed, and where clearly."""
    both = rows.dropna(subset=["here"])
    beyond = len(rows) - len(both)
    outside = f"; {beyond} of {len(rows)} lie between no two settings of ours" if beyond else ""
    if both.empty:
        return "all printed settings lie between no two settings of ours"
    apart = both["here"] - both["printed"]
    more = int((both["here_low"] > both["printed"]).sum())
    less = int((both["here_high"] < both["printed"]).sum())
    return (
        f"ours less printed is {apart.min():+.3f} to {apart.max():+.3f} at {count(len(both), 'printed setting')}, "
        f"by interpolation; at {more} ours is clearly more, at {less} clearly less, at "
        f"{len(both) - more - less} not told apart{outside}"
    )
