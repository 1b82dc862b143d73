"""Embedding inversion by optimisation, for cuts below the embeddings."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize

from bench.backbones import Backbone
from bench.ragged import Ragged
from bench.training import by_length
from bench.types import (
    Attack,
    Channel,
    Collected,
    Goal,
    Guess,
    Ints,
    Knowledge,
    Knows,
    Source,
    ThreatModel,
    Transcript,
)

LEARNING_RATE = {"logits": 0.1, "embeddings": 0.2}
"""Of Adam. For `logits`, published values run from 0.005 to 0.09, with 300 to 72,000 steps; at 0.1
steps by the dozen do. For `embeddings` in units of the spread of E, which differs a hundredfold
between models; on MiniLM this is 0.01."""
TEMPERATURE = 0.05
"""Of the relaxed choice of a word; public settings run from here to 0.2."""


class Optimise(Attack):
    """Searches inputs that the initial bottom maps to what was received, with Adam.

    Each example has its own squared distance; those of a batch are summed, so that an example's
    optimum does not depend on its batch. Where an example was sent in several rounds, each gives a
    candidate, as for `eia-nn`. Segment types are not sent; the attack takes all tokens for the
    first text's.

    The price is `steps` passes forward and back through the bottom for each recorded example and
    round. A run that may not cost that much records fewer examples.
    """

    name: ClassVar[str] = "eia-optimise"
    source: ClassVar[Source] = Source(
        "Information Leakage in Embedding Models (Song & Raghunathan 2020)",
        "white-box inversion",
        "https://arxiv.org/abs/2004.00053",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals=frozenset({Goal.INVERSION}),
        reads=frozenset({Channel.REPRESENTATIONS}),
        knows=frozenset({Knows.BASE_WEIGHTS}),
    )
    costly: ClassVar[bool] = True
    certified_at: ClassVar[float] = 0.99

    relaxation: Literal["logits", "embeddings"] = "logits"
    """Logits: a soft choice among all words, the paper's. Embeddings: free vectors, which start at
    the mean of E and end at the row of E in whose direction they point; a step is several times
    faster, but more of them are needed, and the longer they are free the more they fit the noise."""
    steps: int = Field(50, ge=1)
    """Of Adam. `embeddings` needs 150 to 300 behind deeper blocks."""
    batch_size: int = Field(16, ge=1)
    """Examples side by side. `logits` needs 24 bytes per example, token and word of the vocabulary."""

    def refuses(self, cut: int) -> str | None:
        return "nothing is to be searched at the embedding cut" if cut == 0 else None

    def guess(
        self, seen: Transcript, knowledge: Knowledge, rng: np.random.Generator
    ) -> list[Guess]:
        base, channel = knowledge.base, Channel.REPRESENTATIONS
        assert base is not None
        guesses = []
        for split in seen.splits(channel):
            blocks = [seen.collect(channel, split, r) for r in seen.rounds(channel, split)]
            columns = [self._inverted(block, base, knowledge.cut) for block in blocks]
            candidates: Ints = np.stack(columns, axis=1)
            rows, lengths = blocks[0].rows, blocks[0].lengths
            guesses.append(
                Guess(Goal.INVERSION, channel, split, rows, candidates, lengths, view=split)
            )
        return guesses

    def _inverted(self, block: Collected, base: Backbone, cut: int) -> Ints:
        """[T] the tokens found."""
        assert block.lengths is not None
        received = Ragged(torch.from_numpy(block.values), torch.from_numpy(block.lengths))
        found = np.zeros(len(block.values), np.int64)
        for rows in by_length(received.lengths, self.batch_size):
            batch = received.take(rows)
            best = self._searched(batch, base, cut)
            if self.relaxation == "embeddings":
                # By angle: a norm behind the embeddings hides the length of a vector from the search.
                best = normalize(best) @ normalize(base.embeddings).T
            words = best.argmax(1)
            found[received.positions(rows).numpy()] = words.cpu().numpy()
        return found

    def _searched(self, received: Ragged, base: Backbone, cut: int) -> Tensor:
        """The free variables whose words come nearest to `received`: [t, d], or logits [t, V]."""
        rows = base.embeddings
        target = received.values.to(rows.device)
        types = torch.zeros(len(target), dtype=torch.long, device=rows.device)
        soft = self.relaxation == "logits"
        free = (
            rows.new_zeros(len(target), len(rows)) if soft else rows.mean(0).repeat(len(target), 1)
        )
        free.requires_grad_()
        rate = LEARNING_RATE[self.relaxation] * (1 if soft else float(rows.std()))
        optimiser = torch.optim.Adam([free], lr=rate)
        for _ in range(self.steps):
            words = (free / TEMPERATURE).softmax(1) @ rows if soft else free
            reached = base.bottom(received.with_values(words), types, cut).values
            distance = (reached - target).square().sum()
            (free.grad,) = torch.autograd.grad(distance, free)
            optimiser.step()
        return free.detach()
