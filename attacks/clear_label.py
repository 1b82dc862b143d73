"""clear-label: reads labels that were sent in the clear."""

from typing import ClassVar

from numpy.random import Generator

from leakboard.bench.contracts import Channel, Goal, Guess, ThreatModel, Transcript
from leakboard.bench.methods import Attack, Knowledge, Source


class ClearLabel(Attack):
    """Read the labels that the customer sent to the vendor for training."""

    name: ClassVar[str] = "clear-label"
    source: ClassVar[Source] = Source("Leakboard", "what is sent in the clear")
    threat: ClassVar[ThreatModel] = ThreatModel(goals={Goal.LABEL}, reads={Channel.LABELS})

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        block = seen.collect(Channel.LABELS)
        # Messages need not hold valid classes, but guesses must.
        label = block.values.clip(0, knowledge.classes - 1)
        return [Guess(Goal.LABEL, Channel.LABELS, "train", block.rows, label, view="train")]
