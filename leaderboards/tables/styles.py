"""Style of a defense in figures, and the attacks by which its authors measure it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from leakboard.bench.contracts import Goal
from leakboard.bench.methods import registry

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
"""Colours that colour-blind readers can distinguish, after Paul Tol's schemes."""
MARKERS = "osD^vP<>"


@dataclass(frozen=True)
class Style:
    """Colour and marker of one defense; `knob` is the parameter that trades utility for privacy."""

    colour: str
    marker: str
    knob: str | None
    measured_by: Mapping[Goal, tuple[str, ...]]
    """The attacks of its authors."""
    measured_on: frozenset[str] = frozenset()
    """The channels on which these count; empty for all."""


def style_of(defense: str) -> Style:
    """The style that the defense's class declares, else one derived from its name.

    A name decides its style without regard to other names, so nothing shifts when a method is added.
    """
    cls = registry.now(defense, registry.defenses())
    if cls is not None and cls.colour:
        colour, marker = cls.colour, cls.marker
    else:
        seed = hashlib.sha256(defense.encode()).digest()
        colour, marker = PALETTE[seed[0] % len(PALETTE)], MARKERS[seed[1] % len(MARKERS)]
    if cls is None:
        return Style(colour, marker, None, {})
    return Style(colour, marker, cls.knob, dict(cls.measured_by), cls.measured_on)
