"""One seed per axis, so that two cells of a curve differ by one thing only."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Seeds:
    """Independent seeds derived from the seed of a cell.

    Attributes:
        data: which examples are drawn under a limit, and which are recorded.
        initialisation: adapters and head.
        order: order of the batches, and dropout.
        mechanism: the noise of the defense.
        attack: whatever an attack draws.
    """

    data: int
    initialisation: int
    order: int
    mechanism: int
    attack: int

    @classmethod
    def of(cls, seed: int, shadow: int | None = None) -> Seeds:
        """Of a cell, or of a model that an attacker trains on the same data: the rest is its own."""
        own = "" if shadow is None else f" of shadow {shadow}"
        axes = cls.__dataclass_fields__
        return cls(**{axis: _derive(seed, axis + own * (axis != "data")) for axis in axes})


def _derive(seed: int, axis: str) -> int:
    # The axis enters by its name, so that adding an axis leaves the others as they were.
    sequence = np.random.SeedSequence([seed, zlib.crc32(axis.encode())])
    return int(sequence.generate_state(1, np.uint32)[0])
