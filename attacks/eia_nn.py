"""Embedding inversion by nearest neighbour."""

from typing import ClassVar

import numpy as np

from bench.types import (
    Attack,
    Channel,
    Goal,
    Guess,
    Ints,
    Knowledge,
    Knows,
    Source,
    ThreatModel,
    Transcript,
)


class NearestNeighbour(Attack):
    """Reads each received vector as the token whose initial embedding is nearest (exact L2).

    Where an example was sent in several rounds, each round gives a candidate, and the guess is
    their union, as in SAP's Table 3.
    """

    name: ClassVar[str] = "eia-nn"
    source: ClassVar[Source] = Source(
        "Natural Language Understanding with Privacy-Preserving BERT (Qu et al. 2021); SAP",
        "SAP, section 5.1",
        "https://arxiv.org/abs/2312.15603",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals=frozenset({Goal.INVERSION}),
        reads=frozenset({Channel.REPRESENTATIONS, Channel.TOKENS}),
        knows=frozenset({Knows.BASE_WEIGHTS}),
    )
    certified_at: ClassVar[float] = 0.99

    def readable(self, cut: int) -> frozenset[Channel]:
        """Rows of E are candidates for a representation only at the embedding cut."""
        return self.threat.reads if cut == 0 else frozenset({Channel.TOKENS})

    def guess(
        self, seen: Transcript, knowledge: Knowledge, rng: np.random.Generator
    ) -> list[Guess]:
        assert knowledge.base is not None
        by_vector = Channel.REPRESENTATIONS in seen.channels & self.readable(knowledge.cut)
        channel = Channel.REPRESENTATIONS if by_vector else Channel.TOKENS
        neighbours = knowledge.base.neighbours if by_vector else None
        guesses = []
        for split in seen.splits(channel):
            rounds = seen.rounds(channel, split)
            if not neighbours:  # ids sent in the clear are the same in every round
                rounds = rounds[:1]
            blocks = [seen.collect(channel, split, r) for r in rounds]
            columns = [
                neighbours.nearest_repeated(b.values) if neighbours else b.values for b in blocks
            ]
            candidates: Ints = np.stack(columns, axis=1)
            rows, lengths = blocks[0].rows, blocks[0].lengths
            guesses.append(
                Guess(Goal.INVERSION, channel, split, rows, candidates, lengths, view=split)
            )
        return guesses
