"""eia-learned: embedding inversion by a network trained on public text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.random import Generator
from pydantic import Field
from torch import Tensor, nn

from leakboard.bench.attacking import Inverter, Reader, inversion
from leakboard.bench.backbones import Ragged, Tokens, by_length
from leakboard.bench.contracts import (
    Channel,
    Goal,
    Guess,
    Knows,
    ThreatModel,
    TrainSettings,
    Transcript,
)
from leakboard.bench.methods import Attack, Knowledge, Query, Source, spec_of
from leakboard.bench.tasks import TASK_ITSELF, PublicText

BATCH = 16
LEARNING_RATE = 1e-3
SHARPNESS = 20.0
"""Initial scale of the softmax scores, relative to the mean squared distance of code vectors from their mean:
large enough that the nearest of ten thousand code vectors wins."""


class Vectorwise(Inverter):
    """A network from d to d dimensions, followed by the nearest code vector; it starts as a linear map.

    Args:
        codes: [V, c] one vector for each word.
        start: [d + 1, c] the map, with its offset in the last row; by default the identity.
    """

    def __init__(self, codes: Tensor, start: Tensor | None = None) -> None:
        super().__init__()
        d = codes.shape[1] if start is None else len(start) - 1
        c = codes.shape[1]
        self.codes, self.squares = codes, codes.square().sum(1)
        device = codes.device
        self.linear = nn.Linear(d, c, device=device)
        last = nn.Linear(2 * d, c, device=device)
        self.rest = nn.Sequential(nn.Linear(d, 2 * d, device=device), nn.GELU(), last)
        spread = (codes - codes.mean(0)).square().sum(1).mean()
        self.log_sharpness = nn.Parameter((SHARPNESS / spread).log())
        with torch.no_grad():
            start = torch.eye(d + 1, d, device=device) if start is None else start
            self.linear.weight.copy_(start[:-1].T)
            self.linear.bias.copy_(start[-1])
            last.weight.zero_()
            last.bias.zero_()

    def forward(self, received: Ragged) -> Tensor:
        h = received.values
        h = self.linear(h) + self.rest(h)
        scores: Tensor = self.log_sharpness.exp() * (2 * h @ self.codes.T - self.squares)
        return scores


class Learned(Attack):
    """Read each received vector separately, with a network trained on (token, vector) pairs.

    The pairs come from public text and from the whole vocabulary, written into public texts, and sent through the
    initial bottom and the public mechanism with new noise. Words are scored by their distance to code vectors: the
    rows of E, or, without the weights, the mean vector that came back for each token. The network starts as the
    linear map that fits the pairs best. On held-out public text it must beat this map, and the map must beat the
    identity; otherwise the simpler one is used. Log-probabilities of several rounds are summed. An inverter
    trained with the weights is reused for cells of other seeds.
    """

    name: ClassVar[str] = "eia-learned"
    source: ClassVar[Source] = Source(
        "Information Leakage in Embedding Models (Song & Raghunathan 2020)",
        "section 4.3, inversion with black-box access",
        "https://arxiv.org/abs/2004.00053",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals={Goal.INVERSION},
        reads={Channel.REPRESENTATIONS},
        knows={Knows.BASE_WEIGHTS, Knows.MECHANISM, Knows.AUXILIARY_TEXT, Knows.QUERIES},
    )
    costly: ClassVar[bool] = True
    version: ClassVar[int] = 5

    access: Literal["weights", "query"] = "weights"
    """Weights: the attacker knows the base model and the mechanism. Query: it only sees the messages for texts of its
    own choice."""
    auxiliary: PublicText = TASK_ITSELF
    """Public text to learn from: `own` for that of the task, or the name of another task."""
    sentences: int = Field(4000, ge=2)
    """Maximum number of auxiliary texts; a tenth of them is held out."""
    epochs: int = Field(1, ge=1)
    """Passes over them and the vocabulary."""

    @property
    def needs(self) -> frozenset[Knows]:
        if self.access == "query":
            return frozenset({Knows.QUERIES, Knows.AUXILIARY_TEXT})
        return self.threat.knows - {Knows.QUERIES}

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        public, mechanism = knowledge.auxiliary, knowledge.mechanism
        assert public is not None
        query = knowledge.query if self.access == "query" else self._by_weights(knowledge)
        assert query is not None

        def learn(rng: Generator) -> tuple[Sequence[Vectorwise], Tokens]:
            return self._trained(public.tokens, query, knowledge, rng)

        if self.access == "query":  # answers of this customer are not valid for other cells
            readers, held_out = learn(rng)
        else:
            specs = (
                spec_of(self).model_dump_json(),
                mechanism and spec_of(mechanism).model_dump_json(),
            )
            name = f"{self.name}: {specs[0]} against {specs[1]} at {knowledge.cut}"
            readers, held_out = public.learned.recall(name, learn)

        @cache
        def reader(rounds: int) -> Reader:
            return inversion.best_reader(
                [one.read for one in readers], query, held_out, rounds, rng
            )

        def vectors(values: Tensor) -> Tensor:
            return values.to(readers[0].codes.device)

        return inversion.reader_guesses(seen, Channel.REPRESENTATIONS, vectors, reader)

    def _trained(
        self, public: Tokens, query: Query, knowledge: Knowledge, rng: Generator
    ) -> tuple[Sequence[Vectorwise], Tokens]:
        """The identity, the linear map and the network, and the held-out texts."""
        train, held_out = inversion.split_public(public, self.sentences, rng)
        words = framed(train, knowledge.vocabulary, rng)
        pairs = inversion.concatenate([train, words])
        if self.access == "query":
            codes = codebook(pairs, query, knowledge.vocabulary, rng)
        else:
            assert knowledge.base is not None
            codes = knowledge.base.embeddings
        torch.manual_seed(int(rng.integers(2**31)))
        start = inversion.least_squares(pairs, codes, query, rng)
        readers = [Vectorwise(codes), Vectorwise(codes, start), Vectorwise(codes, start)]
        settings = TrainSettings(
            epochs=self.epochs, batch_size=BATCH, learning_rate=LEARNING_RATE, weight_decay=0.0
        )
        groups: list[dict[str, object]] = [{"params": list(readers[-1].parameters())}]
        inversion.fit(readers[-1], groups, query, pairs, settings, rng)
        return readers, held_out

    def _by_weights(self, knowledge: Knowledge) -> Query:
        """The customer's answer to a text, computed by the attacker from the weights."""
        base, cut = knowledge.base, knowledge.cut
        assert base is not None
        return lambda tokens, rng: inversion.simulate_vectors(
            knowledge.mechanism, base, tokens, cut, rng
        )


def framed(public: Tokens, vocabulary: int, rng: Generator) -> Tokens:
    """Public texts whose tokens are overwritten by all ids in random order, except special tokens.

    Texts are repeated until each of `vocabulary` ids occurs.
    """
    room = int((~public.special).sum())
    if not room:
        return public
    frames = public.take(torch.arange(len(public)).repeat(-(-vocabulary // room)))
    free = ~frames.special
    # Texts after the one with the last id are not needed.
    ends = frames.ids.lengths.cumsum(0) - 1
    needed = int((free.cumsum(0)[ends] < vocabulary).sum()) + 1
    frames = frames.take(torch.arange(needed))
    free = ~frames.special
    order = np.resize(rng.permutation(vocabulary), int(free.sum()))
    ids = frames.ids.values.clone()
    ids[free] = torch.from_numpy(order)
    return frames.with_ids(ids)


def codebook(tokens: Tokens, query: Query, vocabulary: int, rng: Generator) -> Tensor:
    """[V, d] the mean of the vectors that came back for each token."""
    total, counts = None, torch.zeros(vocabulary)
    for rows in by_length(tokens.lengths):
        batch = tokens.take(rows)
        vectors, ids = query(batch, rng).values, batch.ids.values
        if total is None:
            total = vectors.new_zeros(vocabulary, vectors.shape[1])
        total.index_add_(0, ids.to(vectors.device), vectors)
        counts += torch.bincount(ids, minlength=vocabulary)
    assert total is not None, "no token to ask for"
    return total / counts.clamp(min=1)[:, None].to(total.device)
