"""How a method appears in figures and tables: colour, marker, knob, and parameters in words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bench.contracts import Goal
from bench.methods import Defense, registry

PALETTE = (
    "#332288",
    "#117733",
    "#882255",
    "#0077bb",
    "#cc6677",
    "#aa4499",
    "#44aa99",
    "#999933",
    "#ee7733",
)
"""Colours that colour-blind readers tell apart, after Paul Tol's schemes."""
MARKERS = "osD^vP<>"
SYMBOLS = {
    "eta": "η",
    "epsilon": "ε",
    "delta": "δ",
    "sigma": "σ",
    "mu": "μ",
    "alpha": "α",
    "lambda": "λ",
    "lambda_": "λ",
}


_given: Mapping[str, Look] | None = None


@dataclass(frozen=True)
class Look:
    """How one defense is drawn; `knob` is the parameter that trades utility for privacy."""

    colour: str
    marker: str
    knob: str | None
    measured_by: Mapping[Goal, tuple[str, ...]]
    """The attacks of its authors."""
    measured_on: frozenset[str] = frozenset()
    """The channels on which these count; empty for all."""


def look(defense: str) -> Look:
    """The look that the defense's class declares, else one drawn from its name alone.

    A name decides its look without regard to other names, so nothing shifts when a method is added.
    """
    if _given is None:
        cls = registry.defenses().get(defense)
        known = _of(defense, cls) if cls else None
    else:
        known = _given.get(defense)
    return known or Look(*_drawn(defense), None, {})


def declared() -> dict[str, Look]:
    """The looks of all known defenses, by name."""

    return {name: _of(name, cls) for name, cls in registry.defenses().items()}


@contextmanager
def given(looks: Mapping[str, Look]) -> Iterator[None]:
    """Has these looks stand for the declared ones: to ask the classes loads every method."""
    global _given
    before, _given = _given, looks
    try:
        yield
    finally:
        _given = before


def _of(name: str, cls: type[Defense]) -> Look:
    colour, marker = (cls.colour, cls.marker) if cls.colour else _drawn(name)
    return Look(colour, marker, cls.knob, dict(cls.measured_by), cls.measured_on)


def _drawn(name: str) -> tuple[str, str]:
    """Colour and marker."""
    seed = hashlib.sha256(name.encode()).digest()
    return PALETTE[seed[0] % len(PALETTE)], MARKERS[seed[1] % len(MARKERS)]


def darker(colour: str) -> tuple[float, ...]:
    """A colour for small text: light ones would fade on white."""
    from matplotlib.colors import to_rgb

    return tuple(0.75 * channel for channel in to_rgb(colour))


def knob(defense: str, params: Iterable[str]) -> str | None:
    """The declared knob; for a defense unknown here, its only number that varies over `params`."""
    declared = look(defense).knob
    if declared is not None:
        return declared
    loaded = [json.loads(text) for text in params]
    numbers = [
        name
        for name in varying(loaded)
        if all(isinstance(p.get(name), int | float | None) for p in loaded)
        and not any(isinstance(p.get(name), bool) for p in loaded)
    ]
    return numbers[0] if len(numbers) == 1 else None


def varying(params: Iterable[Mapping[str, Any]]) -> list[str]:
    """Names of the parameters that do not have one value throughout, sorted."""
    seen: dict[str, set[str]] = {}
    every = list(params)
    for name in {name for p in every for name in p}:
        seen[name] = {json.dumps(p.get(name), sort_keys=True) for p in every}
    return sorted(name for name, values in seen.items() if len(values) > 1)


def setting(name: str, value: Any) -> str:
    """A parameter in words, such as 'η = 75'; a word, such as 'frozen', speaks for itself."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        value = f"{value:g}"
    elif value is None:
        value = "none"
    return f"{SYMBOLS.get(name, name.replace('_', ' '))} = {value}"


def settings(params: str, names: Iterable[str]) -> str:
    """The named ones of some parameters in words; `params` is JSON."""
    loaded = json.loads(params)
    return ", ".join(setting(name, loaded[name]) for name in names if name in loaded)


def setup(rows: pd.DataFrame, limit: object, epochs: object, digits: object) -> str:
    """What tells one setup from the others in `rows`, which share task, model and defense.

    Names the data limit or the epochs where they tell setups apart, else the setup's digits.
    """
    if rows["setup"].nunique() < 2:
        return ""
    if rows.groupby(["limit", "epochs"], dropna=False)["setup"].nunique().max() > 1:
        return f"setup {digits}"
    parts = []
    if rows["limit"].nunique(dropna=False) > 1:
        parts.append("all data" if limit is pd.NA else setting("limit", limit))
    if rows["epochs"].nunique() > 1:
        parts.append(setting("epochs", epochs))
    return ", ".join(parts)
