"""Nearest neighbours, written against `leakboard` alone; it guesses with torch tensors."""

from typing import ClassVar

import numpy as np
import torch

import leakboard as lb


class SampleNearest(lb.Attack):
    """Reads each received vector as the token whose word embedding is nearest."""

    name: ClassVar[str] = "sample-nearest"
    source: ClassVar[lb.Source] = lb.Source("A sample of a plug-in")
    threat: ClassVar[lb.ThreatModel] = lb.ThreatModel(
        frozenset({lb.Goal.INVERSION}),
        frozenset({lb.Channel.REPRESENTATIONS}),
        frozenset({lb.Knows.BASE_WEIGHTS}),
    )

    def skip(self, conditions: lb.Conditions) -> str | None:
        return (
            None
            if conditions.cut == 0
            else "received vectors are word embeddings at the first cut only"
        )

    def guess(
        self, seen: lb.Transcript, knowledge: lb.Knowledge, rng: np.random.Generator
    ) -> list[lb.Guess]:
        assert knowledge.base is not None
        channel, guesses = lb.Channel.REPRESENTATIONS, []
        table = knowledge.base.embeddings.cpu()
        for split in seen.splits(channel):
            block = seen.collect(channel, split, seen.rounds(channel, split)[0])
            vectors = torch.from_numpy(np.array(block.values))
            nearest = torch.cdist(vectors, table).argmin(1).to(torch.int32)
            rows, lengths = torch.tensor(block.rows), block.lengths.tolist()
            guesses.append(
                lb.Guess(lb.Goal.INVERSION, channel, split, rows, nearest, lengths, view=split)
            )
        return guesses
