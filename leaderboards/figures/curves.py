"""Points of one defense that differ only in its knob, as the curves of a figure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
import pandas as pd

from leakboard.leaderboards.tables import (
    SETTING,
    Style,
    canonical_json,
    describe_setup,
    describe_setup_of_curve,
    format_parameter,
    format_parameters,
    knob_of,
    rows_of,
    style_of,
    varying_names,
)

STYLES = ("-", (0, (6, 1.5, 1, 1.5)), (0, (1, 1)), (0, (3, 1, 1, 1, 1, 1)))
"""For the variants of one defense."""
PRINTED = ((0, (4, 2.5)), (0, (2, 1.5)), (0, (7, 2)), (0, (4, 2, 1, 2)))
"""For what papers print: always dashed."""


@dataclass(frozen=True)
class Curve:
    """Points of one task in the order of the knob, and how to draw them."""

    task: str
    name: str
    look: Style
    style: Any
    rows: pd.DataFrame
    hollow: bool = False
    """Printed in a paper, not measured here."""


def measured_curves(points: pd.DataFrame) -> list[Curve]:
    """The curves of what was measured, tasks and defenses in order of appearance."""
    several = points["model"].nunique() > 1
    told = {
        index: parts
        for _, own in points.groupby("defense", sort=False)
        for index, *parts in _variants(own, several)
    }
    variants, rests, setups = zip(*(told[index] for index in points.index), strict=True)
    named = points.assign(variant=variants, rest=rests, setup=setups)
    return list(_curves(named, ["model", "cut", "setup", "rest"], hollow=False))


def printed_curves(points: pd.DataFrame) -> list[Curve]:
    """The curves of what papers print; a label for each point and the source in each name."""
    whole = points.dropna(subset=["utility", "ep"])
    named = whole.assign(variant="", rest="", label="", knob_value=np.nan)
    for defense, own in whole.groupby("defense", sort=False):
        name = knob_of(str(defense), own["params"])
        shown = varying_names(own["params"], but=name)
        for index, row in zip(own.index, rows_of(own), strict=True):
            params = json.loads(row["params"])
            source = f"{row['paper']}, {row['artefact']}, {row['model']}"
            words = format_parameters(row["params"], shown)
            named.loc[index, "variant"] = f"{source}, {words}" if words else source
            named.loc[index, "rest"] = _without(row["params"], name)
            if name is not None and name in params:
                named.loc[index, "label"] = format_parameter(name, params[name])
                # No noise at all is the far end of a knob, wherever that end may be.
                named.loc[index, "knob_value"] = np.inf if params[name] is None else params[name]
    return list(_curves(named, ["paper", "artefact", "model", "rest"], hollow=True))


def _curves(named: pd.DataFrame, apart: list[str], hollow: bool) -> Iterator[Curve]:
    styles: tuple[Any, ...] = PRINTED if hollow else STYLES
    order = {
        (defense, variant): place
        for defense, own in named.groupby("defense", sort=False)
        for place, variant in enumerate(dict.fromkeys(own["variant"]))
    }
    told = rows_of(named[["task", "defense", "variant", "knob_value"]])
    lines: dict[int, list[int]] = {}
    numbers = named.groupby(["task", "defense", *apart], sort=False, dropna=False).ngroup()
    for place, number in enumerate(numbers):
        lines.setdefault(number, []).append(place)
    for places in lines.values():
        first = told[places[0]]
        defense, variant = str(first["defense"]), str(first["variant"])
        name = f"{defense} ({variant})" if variant else defense
        places.sort(key=lambda place: _last_if_missing(told[place]["knob_value"]))
        style = styles[order[defense, variant] % len(styles)]
        yield Curve(str(first["task"]), name, style_of(defense), style, named.iloc[places], hollow)


def _last_if_missing(number: float) -> tuple[bool, float]:
    return (True, 0.0) if isnan(number) else (False, number)


def _variants(own: pd.DataFrame, several_models: bool) -> Iterator[tuple[object, str, str, str]]:
    """For each row of one defense: what tells its curve from the others, and two keys of that.

    Points that were trained in ways of their own are on one curve, where none stands there twice.
    """
    shown = varying_names(own["params"], but=own["knob"].iloc[0])
    several_cuts = own["cut"].nunique() > 1
    for _, same in own[[*SETTING, "knob"]].groupby(["task", "model"], sort=False):
        point = same.groupby(["cut", "shared", "params"], sort=False)
        twice = bool((point["setup"].nunique() > 1).any())
        by = "setup" if twice else "shared"
        for index, row in zip(same.index, rows_of(same), strict=True):
            parts = [str(row["model"])] if several_models else []
            parts += [f"cut = {row['cut']}"] if several_cuts else []
            parts += [format_parameters(row["params"], shown)]
            parts += [describe_setup(row, same) if twice else describe_setup_of_curve(row, same)]
            words = ", ".join(filter(None, parts))
            yield index, words, _without(row["params"], row["knob"]), row[by]


def _without(params: str, name: str | None) -> str:
    return canonical_json({k: v for k, v in json.loads(params).items() if k != name})
