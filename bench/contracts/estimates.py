"""Measured numbers with their uncertainty."""

from __future__ import annotations

from leakboard.bench.contracts.parts import Part


class Estimate(Part):
    """A measured number with its uncertainty."""

    value: float
    low: float
    """Lower end of the 95 % interval."""
    high: float
    n: int
    """Independent units behind the interval: examples, never tokens."""
    chance: float
    """What guessing without any observation reaches."""


class Point(Part):
    """What an attack found at one moment of training, in the part where it found most."""

    step: int
    """The first of the window; −1 for what was sent outside of training."""
    part: int
    """Which adapter, which gradient of it, or which pair of adapters; −1 for all adapters at once."""
    recipient: str
    success: Estimate
