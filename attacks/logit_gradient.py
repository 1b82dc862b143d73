"""Reads the label from ∂loss/∂logits."""

from typing import ClassVar

import numpy as np

from bench.types import (
    Attack,
    Channel,
    Goal,
    Guess,
    Knowledge,
    Source,
    ThreatModel,
    Transcript,
)


class LogitGradient(Attack):
    """With softmax cross-entropy the gradient is (p − onehot)/B: only the label's entry is negative."""

    name: ClassVar[str] = "logit-gradient"
    source: ClassVar[Source] = Source(
        "Label Inference Attacks Against Vertical Federated Learning (Fu et al. 2022)",
        "direct label inference",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals=frozenset({Goal.LABEL}), reads=frozenset({Channel.LOGIT_GRADIENTS})
    )
    certified_at: ClassVar[float] = 0.99

    def guess(
        self, seen: Transcript, knowledge: Knowledge, rng: np.random.Generator
    ) -> list[Guess]:
        channel = Channel.LOGIT_GRADIENTS
        blocks = [seen.collect(channel, "train", r) for r in seen.rounds(channel)]
        # The sign is the same in every round; the sum outweighs rounding where p is close to onehot.
        total = np.sum([block.values for block in blocks], axis=0)
        label = total.argmin(axis=1)
        return [Guess(Goal.LABEL, channel, "train", blocks[0].rows, label, view="train")]
