"""What a defense declares of how it is drawn and measured: colour, marker, knob, its authors' attacks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from leakboard.bench.contracts import Goal
from leakboard.bench.methods import Defense, registry

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
        cls = registry.find(defense, registry.defenses())
        known = _of(defense, cls) if cls else None
    else:
        known = _given.get(defense)
    return known or Look(*_drawn(defense), None, {})


def declared() -> dict[str, Look]:
    """The looks of all known defenses, by name and by the names that they had before."""
    return {
        name: _of(name, cls)
        for current, cls in registry.defenses().items()
        for name in (current, *cls.formerly)
    }


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
