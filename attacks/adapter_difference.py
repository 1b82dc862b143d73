"""Label leakage in the difference of what one server computes for two adapters."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, groupby
from typing import ClassVar

import numpy as np

from leakboard.attacks.spectral import Spectral
from leakboard.bench.attacking import Matrix, matrices
from leakboard.bench.contracts import Channel, Goal, Guess, Measure, ThreatModel, Transcript
from leakboard.bench.methods import Attack, Knowledge, Silent, Source

CHANNELS = (Channel.ACTIVATIONS, Channel.RECOMPUTED)


class AdapterDifference(Attack):
    """Spectral on h(x, θ_i) − h(x, θ_j), for all pairs of adapters that one server answers for.

    P³EFT's regulariser keeps labels out of each adapter by itself; the mixture that the customer reads
    them from is a difference of adapters, weighted with secrets. All of them started equal, so that
    what tells them apart was learnt.
    """

    name: ClassVar[str] = "adapter-difference"
    source: ClassVar[Source] = Source("Leakboard", "adaptive attack on P³EFT's mixture of adapters")
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals=frozenset({Goal.LABEL}), reads=frozenset(CHANNELS)
    )
    measure: ClassVar[Measure] = "auc"

    def guess(
        self, seen: Transcript, knowledge: Knowledge, rng: np.random.Generator
    ) -> list[Guess]:
        pairs = differences(matrices(seen, channels=CHANNELS))
        if not pairs:
            raise Silent(
                "no server has activations of two adapters at one moment of training, so that there "
                "is no difference to look at"
            )
        return [
            pair.guess(
                self.measure, pair.rows, Spectral().read(pair.values, knowledge.classes, rng)
            )
            for pair in pairs
        ]


def differences(found: Iterable[Matrix]) -> list[Matrix]:
    """Differences of all pairs of parts that one recipient saw of the same rows; parts number the pairs."""

    def place(matrix: Matrix) -> tuple[str, int, int, str]:
        return str(matrix.channel), matrix.moment or 0, matrix.round, matrix.recipient

    pairs = []
    for _, own in groupby(sorted(found, key=place), key=place):
        for number, (one, other) in enumerate(combinations(own, 2)):
            if np.array_equal(one.rows, other.rows):
                pairs.append(one.minus(other, number))
    return pairs
