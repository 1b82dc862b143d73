"""eia-nn: embedding inversion by nearest neighbour."""

from typing import ClassVar

import numpy as np
from numpy.random import Generator

from leakboard.bench.contracts import Channel, Goal, Guess, Ints, Knows, ThreatModel, Transcript
from leakboard.bench.methods import Attack, Knowledge, Source


class NearestNeighbour(Attack):
    """Read each received vector as the token with the nearest initial embedding (exact L2).

    If an example was sent in several rounds, each round gives a candidate, and the guess is their union, as in
    SAP's Table 3.
    """

    name: ClassVar[str] = "eia-nn"
    source: ClassVar[Source] = Source(
        "Natural Language Understanding with Privacy-Preserving BERT (Qu et al. 2021); SAP",
        "SAP, section 5.1",
        "https://arxiv.org/abs/2312.15603",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals={Goal.INVERSION},
        reads={Channel.REPRESENTATIONS, Channel.TOKENS},
        knows={Knows.BASE_WEIGHTS},
    )

    def readable(self, cut: int) -> frozenset[Channel]:
        """Channels at a cut; representations can be compared with rows of E only at the embedding cut."""
        return self.threat.reads if cut == 0 else frozenset({Channel.TOKENS})

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        assert knowledge.base is not None
        by_vector = Channel.REPRESENTATIONS in seen.channels & self.readable(knowledge.cut)
        channel = Channel.REPRESENTATIONS if by_vector else Channel.TOKENS
        read_as = knowledge.base.neighbours.nearest_repeated if by_vector else np.asarray
        guesses = []
        for split in seen.splits(channel):
            rounds = seen.rounds(channel, split)
            if not by_vector:  # ids sent in the clear are the same in every round
                rounds = rounds[:1]
            columns = []
            for r in rounds:
                read = [
                    (b.rows, b.lengths, read_as(b.values)) for b in seen.blocks(channel, split, r)
                ]
                rows, lengths, ids = (np.concatenate(column) for column in zip(*read, strict=True))
                columns.append(ids)
            candidates: Ints = np.stack(columns, axis=1)
            guesses.append(
                Guess(Goal.INVERSION, channel, split, rows, candidates, lengths, view=split)
            )
        return guesses
