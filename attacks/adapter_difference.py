"""adapter-difference: label inference from the difference of two adapters' activations on one server."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, groupby
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from leakboard.attacks.spectral import Spectral
from leakboard.bench.attacking import Matrix, matrices
from leakboard.bench.contracts import Channel, Goal, Guess, Measure, ThreatModel, Transcript
from leakboard.bench.methods import Attack, Knowledge, Silent, Source

CHANNELS = (Channel.ACTIVATIONS, Channel.RECOMPUTED)


class AdapterDifference(Attack):
    """Apply `spectral` to h(x, θ_i) − h(x, θ_j), for all pairs of adapters that one server holds.

    P³EFT's regulariser removes labels from each single adapter. The customer reads labels from a secretly
    weighted mixture, which is a difference of adapters. All adapters start equal, so their differences are
    learnt.
    """

    name: ClassVar[str] = "adapter-difference"
    source: ClassVar[Source] = Source("Leakboard", "adaptive attack on P³EFT's mixture of adapters")
    threat: ClassVar[ThreatModel] = ThreatModel(goals={Goal.LABEL}, reads=CHANNELS)
    measure: ClassVar[Measure] = "auc"

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        pairs = differences(matrices(seen, channels=CHANNELS))
        if not pairs:
            raise Silent(
                "no server has activations of two adapters at one moment of training, so there "
                "is no difference to read"
            )
        return [
            pair.guess(
                self.measure, pair.rows, Spectral().read(pair.values, knowledge.classes, rng)
            )
            for pair in pairs
        ]


def differences(found: Iterable[Matrix]) -> list[Matrix]:
    """Differences between all pairs of parts that one recipient saw of the same rows, numbered as parts."""

    def place(matrix: Matrix) -> tuple[str, int, int, str]:
        return str(matrix.channel), matrix.moment or 0, matrix.round, matrix.recipient

    pairs = []
    for _, own in groupby(sorted(found, key=place), key=place):
        for number, (one, other) in enumerate(combinations(own, 2)):
            if np.array_equal(one.rows, other.rows):
                pairs.append(one.minus(other, number))
    return pairs
