"""logit-gradient: reads the label from ∂loss/∂logits."""

from typing import ClassVar

from numpy.random import Generator

from leakboard.bench.contracts import Channel, Goal, Guess, ThreatModel, Transcript
from leakboard.bench.methods import Attack, Knowledge, Source


class LogitGradient(Attack):
    """Read the label from the sign of the gradient: (p − onehot)/B is negative at the label only."""

    name: ClassVar[str] = "logit-gradient"
    source: ClassVar[Source] = Source(
        "Label Inference Attacks Against Vertical Federated Learning (Fu et al. 2022)",
        "direct label inference",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(goals={Goal.LABEL}, reads={Channel.LOGIT_GRADIENTS})

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        channel = Channel.LOGIT_GRADIENTS
        # The sign is the same in every round; the sum reduces rounding error where p is close to onehot.
        first, *later = seen.rounds(channel)
        block = seen.collect(channel, "train", first)
        for r in later:  # one round at a time, to save memory
            block.values[:] += seen.collect(channel, "train", r).values
        label = block.values.argmin(axis=1)
        return [Guess(Goal.LABEL, channel, "train", block.rows, label, view="train")]
