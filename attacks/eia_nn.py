"""Embedding inversion by nearest neighbour."""

from typing import ClassVar

import numpy as np
from scipy.stats import mode

from bench.neighbours import Neighbours
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

    Where an example was sent in several rounds, the headline guess is the union of the rounds, as
    in SAP's Table 3; a second guess, the most frequent candidate, is what an attacker could commit to.
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

    def refuses(self, cut: int) -> str | None:
        return None if cut == 0 else "the rows of E are candidates only at the embedding cut"

    def guess(
        self, seen: Transcript, knowledge: Knowledge, rng: np.random.Generator
    ) -> list[Guess]:
        assert knowledge.base is not None
        by_vector = Channel.REPRESENTATIONS in seen.channels
        channel = Channel.REPRESENTATIONS if by_vector else Channel.TOKENS
        neighbours = Neighbours(knowledge.base.embeddings, knowledge.device) if by_vector else None
        guesses = []
        for split in seen.splits(channel):
            blocks = [seen.collect(channel, split, r) for r in seen.rounds(channel, split)]
            columns = [
                neighbours.nearest_repeated(b.values) if neighbours else b.values for b in blocks
            ]
            rounds: Ints = np.stack(columns, axis=1)
            rows, lengths = blocks[0].rows, blocks[0].lengths
            guesses.append(Guess(Goal.INVERSION, channel, split, rows, rounds, lengths, view=split))
            if len(blocks) > 1 and neighbours:
                vote: Ints = np.asarray(mode(rounds, axis=1).mode)
                guesses.append(
                    Guess(
                        Goal.INVERSION, channel, split, rows, vote, lengths, view=f"{split}, vote"
                    )
                )
        return guesses
