"""eia-optimise: embedding inversion by optimisation, for cuts behind a block."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.random import Generator
from pydantic import Field
from torch import Tensor
from torch.nn.functional import embedding

from leakboard.bench.attacking import Choice, Discriminant, Logits, Vectors
from leakboard.bench.backbones import Backbone, Ragged, by_length
from leakboard.bench.contracts import (
    Channel,
    Collected,
    Goal,
    Guess,
    Ints,
    Knows,
    ThreatModel,
    Transcript,
)
from leakboard.bench.methods import Attack, Conditions, Knowledge, Source

RATE = {"logits": 0.1, "embeddings": 0.2}
"""Learning rate of Adam. For `logits`, published values are 0.005 to 0.09 with 300 to 72,000 steps; with 0.1 a
few dozen steps suffice. For `embeddings`, in units of the spread of E; on MiniLM this is 0.01."""
TRUST = {"candidates": 0.5, "all": 0.1}
"""Weight of the discriminant's log-likelihood in the initial logits. The discriminant ignores context and is
overconfident; with weight 1 its wrong words would get no gradient."""
CHECK = 3
"""Steps between two checks of the chosen words."""
PATIENCE = 2
"""Checks in a row with the same words, after which a search among candidates ends. A search among all words
continues, since it handles examples that were not solved."""
EXACT = 1e-8
"""Squared distance, relative to the received vectors, that rounding error explains."""
OUTLIER = 1.5
"""Squared distance of a position relative to the median of its example. The norm of noise in hundreds of
dimensions hardly varies (dχ noise in 384: by 5 %), so an outlier is a wrong word."""


class Optimise(Attack):
    """Search for inputs that the initial bottom maps to the received vectors, with Adam.

    A linear discriminant, fitted on random words, gives the likelihood of each word at each position. The search
    starts there, among the likeliest `candidates`. If its words do not explain the received vectors, it is
    repeated among all words, and the closer words are kept. Every few steps the bottom is run on the current
    words, and the closest words of the whole search are the guess. The search stops early once they reproduce
    the received vectors, or no longer change.

    The search of an example does not depend on its batch. If an example was sent in several rounds, each gives a
    candidate, as for `eia-nn`. Segment types are not sent, so all tokens count as the first text.

    Cost: at most 2 × `steps` forward and backward passes through the bottom per recorded example and round;
    without noise, one forward pass behind the first blocks.
    """

    name: ClassVar[str] = "eia-optimise"
    version: ClassVar[int] = 2
    source: ClassVar[Source] = Source(
        "Information Leakage in Embedding Models (Song & Raghunathan 2020)",
        "white-box inversion",
        "https://arxiv.org/abs/2004.00053",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals={Goal.INVERSION}, reads={Channel.REPRESENTATIONS}, knows={Knows.BASE_WEIGHTS}
    )
    costly: ClassVar[bool] = True

    relaxation: Literal["logits", "embeddings"] = "logits"
    """Logits: a soft choice among words, as in the paper. Embeddings: free vectors, which start at the likeliest
    words or at the mean of E, and are read as the rows of E with the nearest direction."""
    steps: int = Field(50, ge=1)
    """Maximum number of steps. `embeddings` needs 150 to 300 behind deeper blocks."""
    candidates: int = Field(256, ge=1)
    """Words per position among which `logits` searches first."""
    batch_size: int = Field(16, ge=1)
    """Examples per batch. A search among all words needs 24 bytes per example, token and word of the vocabulary."""

    def skip(self, conditions: Conditions) -> str | None:
        return "nothing is to be searched at the embedding cut" if conditions.cut == 0 else None

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        base, channel = knowledge.base, Channel.REPRESENTATIONS
        assert base is not None
        discriminant = Discriminant(base, knowledge.cut, rng)
        guesses = []
        for split in seen.splits(channel):
            blocks = [seen.collect(channel, split, r) for r in seen.rounds(channel, split)]
            columns = [self._inverted(b, base, knowledge.cut, discriminant) for b in blocks]
            candidates: Ints = np.stack(columns, axis=1)
            rows, lengths = blocks[0].rows, blocks[0].lengths
            guesses.append(
                Guess(Goal.INVERSION, channel, split, rows, candidates, lengths, view=split)
            )
        return guesses

    def _inverted(
        self, block: Collected, base: Backbone, cut: int, discriminant: Discriminant
    ) -> Ints:
        """[T] the tokens found."""
        assert block.lengths is not None
        received = Ragged(torch.from_numpy(block.values), torch.from_numpy(block.lengths))
        found = np.zeros(len(block.values), np.int64)
        for rows in by_length(received.lengths, self.batch_size):
            batch = received.take(rows)
            batch = batch.with_values(batch.values.to(base.embeddings.device))
            target = Target(batch, base, cut)
            likely = discriminant.scores(batch)
            words = self._searched(
                target, self._among_candidates(likely, base.embeddings), PATIENCE
            )
            left = ~target.explained_by(words, discriminant.centre)
            if left.any():
                at = target.tokens_of(left)
                rest, first = target.take(left), words[at]
                second = self._searched(rest, self._among_all(likely[at], base.embeddings))
                closer = rest.distances(second) < rest.distances(first)
                words[at] = torch.where(rest.tokens_of(closer).to(first.device), second, first)
            found[received.positions(rows).numpy()] = words.cpu().numpy()
        return found

    def _among_candidates(self, likely: Tensor, rows: Tensor) -> Choice:
        """Start of the first search, given the log-likelihood of every word [t, V]."""
        if self.relaxation == "embeddings":
            return Vectors(embedding(likely.argmax(1), rows), rows, RATE["embeddings"])
        best, among = likely.topk(min(self.candidates, len(rows)))
        return Logits(TRUST["candidates"] * best, rows, RATE["logits"], among)

    def _among_all(self, likely: Tensor, rows: Tensor) -> Choice:
        """Start of the second search, among all words."""
        if self.relaxation == "embeddings":
            return Vectors(rows.mean(0).repeat(len(likely), 1), rows, RATE["embeddings"])
        return Logits(TRUST["all"] * likely, rows, RATE["logits"])

    def _searched(self, target: Target, choice: Choice, patience: float = math.inf) -> Tensor:
        """[t] the closest words that the search of each example visits."""
        left, rows = target, torch.arange(len(target.received))
        last = found = choice.words()
        nearest, unchanged = torch.full((len(rows),), torch.inf), torch.full((len(rows),), -1)
        for step in range(self.steps + 1):
            if step % CHECK == 0 or step == self.steps:
                words = choice.words()
                distance = left.distances(words)
                closer = distance < nearest[rows]
                nearest[rows[closer]] = distance[closer]
                at, those = target.received.positions(rows), left.tokens_of(closer)
                found[at[those]] = words[those]
                changed = left.summed((words != last).float()) > 0
                unchanged = torch.where(changed, 0, unchanged + 1)
                go = (nearest[rows] > left.rounding()) & (unchanged < patience)
                if not go.any():
                    break
                those = left.tokens_of(go)
                choice.keep(those)
                left, rows, unchanged, last = left.take(go), rows[go], unchanged[go], words[those]
            if step < self.steps:
                choice.step(left.squares)
        return found


@dataclass(frozen=True)
class Target:
    """Received vectors of a batch of n examples with t tokens, and the map that produced them."""

    received: Ragged
    base: Backbone
    cut: int

    def squares(self, vectors: Tensor) -> Tensor:
        """[t] squared distance between the outputs for embeddings [t, d] and the received vectors."""
        types = torch.zeros(len(vectors), dtype=torch.long)
        reached = self.base.bottom(self.received.with_values(vectors), types, self.cut)
        return (reached.values - self.received.values).square().sum(1)

    @torch.no_grad()
    def squares_of(self, words: Tensor) -> Tensor:
        return self.squares(embedding(words, self.base.embeddings))

    def summed(self, values: Tensor) -> Tensor:
        """[n] sums over the tokens of each example."""
        lengths = self.received.lengths.to(values.device)
        return torch.segment_reduce(values, "sum", lengths=lengths).cpu()

    def distances(self, words: Tensor) -> Tensor:
        """[n] squared distance of each example."""
        return self.summed(self.squares_of(words))

    def rounding(self) -> Tensor:
        """[n] the squared distance below which an example is solved."""
        return EXACT * self.summed(self.received.values.square().sum(1))

    def explained_by(self, words: Tensor, centre: Tensor) -> Tensor:
        """[n] whether words explain an example: the distance is that of rounding or of noise.

        Noise leaves about the same distance at every position, and less than the distance from the `centre` [d].
        """
        squares = self.squares_of(words).cpu()
        parts = torch.split(squares, self.received.lengths.tolist())
        even = torch.tensor(
            [len(part) > 1 and bool(part.max() <= OUTLIER * part.median()) for part in parts]
        )
        missing = self.summed(squares)
        without = self.summed((self.received.values - centre).square().sum(1))
        return (even & (missing < without)) | (missing <= self.rounding())

    def tokens_of(self, examples: Tensor) -> Tensor:
        """[t] a mask of examples [n], expanded to tokens."""
        return torch.repeat_interleave(examples, self.received.lengths)

    def take(self, examples: Tensor) -> Target:
        """The examples of a mask [n]."""
        return replace(self, received=self.received.take(torch.nonzero(examples)[:, 0]))
