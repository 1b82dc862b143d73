"""activation-delta: label inference from the change of activations during training."""

from __future__ import annotations

from typing import ClassVar

from numpy.random import Generator

from leakboard.attacks.spectral import Spectral
from leakboard.bench.attacking import against_untrained
from leakboard.bench.contracts import Channel, Goal, Guess, Knows, Measure, ThreatModel, Transcript
from leakboard.bench.methods import Attack, Knowledge, Source


class ActivationDelta(Attack):
    """Apply `spectral` to h(x, θ_t) − h(x, θ_0), since the activations of the untrained model are public."""

    name: ClassVar[str] = "activation-delta"
    source: ClassVar[Source] = Source("Leakboard", "adaptive attack on activations over an API")
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals={Goal.LABEL}, reads={Channel.RECOMPUTED}, knows={Knows.BASE_WEIGHTS}
    )
    measure: ClassVar[Measure] = "auc"

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        return [
            matrix.guess(
                self.measure,
                matrix.rows,
                Spectral().read(matrix.values - untrained, knowledge.classes, rng),
            )
            for matrix, untrained in against_untrained(seen)
        ]
