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
    def of(cls, seed: int) -> Seeds:
        return cls(**{axis: _derive(seed, axis) for axis in cls.__dataclass_fields__})


def _derive(seed: int, axis: str) -> int:
    # The axis enters by its name, so that adding an axis leaves the others as they were.
    sequence = np.random.SeedSequence([seed, zlib.crc32(axis.encode())])
    return int(sequence.generate_state(1, np.uint32)[0])
