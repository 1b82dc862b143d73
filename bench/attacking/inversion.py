"""Code shared by learned inversion attacks: training pairs from public text, training, and model selection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, embedding

from leakboard.bench.backbones import Backbone, Ragged, Tokens, by_length
from leakboard.bench.contracts import (
    Channel,
    Goal,
    Guess,
    LeakboardError,
    TrainSettings,
    Transcript,
)
from leakboard.bench.exchange import Loop
from leakboard.bench.methods import Auxiliary, Defense, Knowledge, Query
from leakboard.bench.tasks import Split, public_rows

HELD_OUT = 0.1
"""Share of the auxiliary texts on which readers are compared; nothing is trained on their sources."""
BATCH = 16
"""Examples read at once; each of their tokens has a score for every word of the vocabulary."""

RIDGE = 1e-8
"""Relative to the mean square of a coordinate: keeps the fit defined where vectors do not span."""

Reader = Callable[[Sequence[Ragged]], Tensor]
"""The same examples as received in each round, vectors [T, d] → a token id per position [T], or several
of which one may be right [T, R]."""


class Inverter(nn.Module, ABC):
    """Reads vectors at the cut as tokens."""

    @abstractmethod
    def forward(self, received: Ragged) -> Tensor:
        """Scores [T, V] of every word at every position of vectors [T, d]."""

    @torch.no_grad()
    def read(self, rounds: Sequence[Ragged]) -> Tensor:
        """[T] the most likely tokens; log-probabilities of the rounds, whose noise is independent, add up."""
        self.eval()
        found = torch.zeros(len(rounds[0].values), dtype=torch.long)
        for rows in by_length(rounds[0].lengths, BATCH):
            total = sum(self(received.take(rows)).log_softmax(1) for received in rounds)
            assert isinstance(total, Tensor)
            found[rounds[0].positions(rows)] = total.argmax(1).cpu()
        return found


@dataclass(frozen=True)
class ReceivedWords:
    """Words as they arrived, for who knows the mechanism and has public text.

    Attributes:
        channel: on which they arrived, as vectors or as ids of words.
        cut: behind so many blocks; 0 for ids.
    """

    seen: Transcript
    base: Backbone
    mechanism: Defense
    public: Auxiliary
    channel: Channel
    cut: int

    @classmethod
    def of(
        cls, seen: Transcript, knowledge: Knowledge, readable: frozenset[Channel]
    ) -> ReceivedWords:
        """As vectors, where these can be read and are there."""
        assert knowledge.base is not None
        assert knowledge.mechanism is not None
        assert knowledge.auxiliary is not None
        by_vector = Channel.REPRESENTATIONS in seen.channels & readable
        return cls(
            *(seen, knowledge.base, knowledge.mechanism, knowledge.auxiliary),
            channel=Channel.REPRESENTATIONS if by_vector else Channel.TOKENS,
            cut=knowledge.cut if by_vector else 0,
        )

    def simulated(self, rng: np.random.Generator) -> bool:
        """Whether the mechanism does anything to words that who knows it can do, too."""
        probe = self.public.tokens.take(torch.arange(1))
        return self.mechanism.simulate(self.base, probe, self.cut, rng) is not None

    def query(self, tokens: Tokens, rng: np.random.Generator) -> Ragged:
        """Vectors [T, d] for public tokens, with fresh noise."""
        return simulate_vectors(self.mechanism, self.base, tokens, self.cut, rng)

    def copied(self, rounds: Sequence[Ragged]) -> Tensor:
        """[T, R] what `eia-nn` says: the nearest word of each round; ids in the clear are the same in all."""
        kept = rounds[: None if self.channel == Channel.REPRESENTATIONS else 1]
        return torch.stack([nearest(self.base, each).cpu() for each in kept], 1)

    def guesses(self, reader: Callable[[int], Reader]) -> list[Guess]:
        """See `guesses`; ids are read as rows of E."""

        def vectors(values: Tensor) -> Tensor:
            values = values.to(self.base.device)
            by_vector = self.channel == Channel.REPRESENTATIONS
            return values if by_vector else self.base.embeddings[values]

        return reader_guesses(self.seen, self.channel, vectors, reader)


def nearest(base: Backbone, received: Ragged) -> Tensor:
    """[T] the word whose embedding is nearest to each vector."""
    found = base.neighbours.nearest_repeated(received.values.detach().cpu().numpy())
    return torch.from_numpy(found).to(received.values.device)


def simulate_vectors(
    mechanism: Defense | None, base: Backbone, tokens: Tokens, cut: int, rng: np.random.Generator
) -> Ragged:
    """Vectors [T, d] for public tokens: through the mechanism, or the initial bottom where there is none."""
    simulated = mechanism.simulate(base, tokens, cut, rng) if mechanism else None
    if simulated is not None:
        return simulated
    words = embedding(tokens.ids.values.to(base.device), base.embeddings)
    with torch.no_grad():
        return base.bottom(tokens.ids.with_values(words), tokens.types, cut)


def split_public(public: Tokens, sentences: int, rng: np.random.Generator) -> tuple[Tokens, Tokens]:
    """At most `sentences` examples drawn from public text: those to train on, and those held out.

    Those held out are of other sources, as the customers' are; where all are of one, they are any.

    Raises:
        LeakboardError: fewer than two examples.
    """
    if len(public) < 2:
        raise LeakboardError(f"needs at least 2 auxiliary texts, there are {len(public)}")
    drawn = public.take(torch.from_numpy(rng.permutation(len(public))[: max(2, sentences)]))
    train = torch.from_numpy(sample_sources(drawn, 1 - HELD_OUT))
    if train.all():
        train[: max(1, round(HELD_OUT * len(drawn)))] = False
    return drawn.take(train.nonzero()[:, 0]), drawn.take((~train).nonzero()[:, 0])


def sample_sources(tokens: Tokens, share: float) -> NDArray[np.bool_]:
    """[n] examples of about this share of the sources.

    The others are to them as the customers' texts are to public ones (`leakboard.bench.tasks.public_rows`), so that what
    is found on the others holds for the customers'. All are meant where they are of one source.
    """
    sizes = tokens.lengths.tolist()
    each = zip(*(torch.split(of, sizes) for of in (tokens.ids.values, tokens.special)), strict=True)
    texts = tuple(" ".join(map(str, ids[~added].tolist())) for ids, added in each)
    return public_rows(Split(texts, np.zeros(len(texts), np.int64)), (), share)


def token_counts(tokens: Tokens, vocabulary: int) -> Tensor:
    """[V] how often each token occurs, special ones left out."""
    return torch.bincount(tokens.ids.values[~tokens.special], minlength=vocabulary)


def concatenate(parts: Sequence[Tokens]) -> Tokens:
    """The examples of all parts, one after another."""
    return Tokens(
        Ragged.joined([part.ids for part in parts]),
        torch.cat([part.types for part in parts]),
        torch.cat([part.special for part in parts]),
    )


def least_squares(tokens: Tokens, codes: Tensor, query: Query, rng: np.random.Generator) -> Tensor:
    """[d + 1, c] the affine map from received vectors [t, d] to the code vectors [V, c] of their tokens."""
    squares, products = torch.zeros(()), torch.zeros(())
    for rows in by_length(tokens.lengths):
        batch = tokens.take(rows)
        real = ~batch.special
        h = query(batch, rng).values.cpu().double()[real]
        h = torch.cat([h, h.new_ones(len(h), 1)], 1)
        squares = squares + h.T @ h
        products = products + h.T @ codes[batch.ids.values[real].to(codes.device)].cpu().double()
    ridge = RIDGE * squares.diagonal().mean() * torch.eye(len(squares), dtype=torch.float64)
    found: Tensor = torch.linalg.solve(squares + ridge, products)
    return found.float().to(codes.device)


def fit(
    inverter: Inverter,
    groups: Sequence[dict[str, object]],
    query: Query,
    tokens: Tokens,
    settings: TrainSettings,
    rng: np.random.Generator,
) -> None:
    """Trains on public tokens and what would be received of them, with fresh noise at every batch.

    The loss is the cross-entropy at the positions of tokens that are not special.

    Raises:
        Diverged: see `Loop.fit`.
    """
    inverter.train()

    def step(rows: Tensor, epoch: int) -> float:
        batch = tokens.take(rows)
        scores = inverter(query(batch, rng))
        real = ~batch.special
        loss = cross_entropy(
            scores[real.to(scores.device)], batch.ids.values[real].to(scores.device)
        )
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.item()

    seed, vocabulary = int(rng.integers(2**31)), int(tokens.ids.values.max()) + 1
    Loop(settings, seed, vocabulary).fit(step, groups, tokens.lengths)


def best_reader(
    readers: Sequence[Reader], query: Query, held_out: Tokens, rounds: int, rng: np.random.Generator
) -> Reader:
    """The reader that is right most often on held-out public text, seen in as many rounds.

    Ties go to the first, so the plain reader that stands there is replaced only by a better one.
    """
    seen = [query(held_out, rng) for _ in range(rounds)]
    real, truth = ~held_out.special, held_out.ids.values[:, None]
    found = (reader(seen).reshape(len(truth), -1) == truth for reader in readers)
    right = [int(each.any(1)[real].sum()) for each in found]
    return readers[int(np.argmax(right))]


def reader_guesses(
    seen: Transcript,
    channel: Channel,
    vectors: Callable[[Tensor], Tensor],
    reader: Callable[[int], Reader],
) -> list[Guess]:
    """What the reader says of the tokens of each split.

    Args:
        vectors: values as received → vectors [T, d].
        reader: number of rounds → the reader to use.
    """
    found = []
    for split in seen.splits(channel):
        blocks = [seen.collect(channel, split, r) for r in seen.rounds(channel, split)]
        rounds = []
        for block in blocks:
            assert block.lengths is not None
            # Copied: what was recorded is read-only.
            values = vectors(torch.from_numpy(block.values.copy()))
            rounds.append(Ragged(values, torch.from_numpy(block.lengths.copy())))
        words = reader(len(rounds))(rounds).numpy()
        rows, lengths = blocks[0].rows, blocks[0].lengths
        found.append(Guess(Goal.INVERSION, channel, split, rows, words, lengths, view=split))
    return found
