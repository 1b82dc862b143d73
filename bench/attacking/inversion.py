"""Code shared by learned inversion attacks: training pairs from public text, training, and model selection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

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
"""Share of the auxiliary texts on which readers are compared; no text of their sources is used in training."""
BATCH = 16
"""Number of examples read at once; each of their tokens has a score for every word of the vocabulary."""

RIDGE = 1e-8
"""Ridge of the fit, relative to the mean square of a coordinate, for vectors that do not span the space."""

Reader = Callable[[Sequence[Ragged]], Tensor]
"""Function from the vectors [T, d] of the same examples in each round to token ids [T], or [T, R] alternatives."""


class Inverter(nn.Module, ABC):
    """A network that predicts tokens from vectors at the cut."""

    @abstractmethod
    def forward(self, received: Ragged) -> Tensor:
        """Scores [T, V] of every word at every position of vectors [T, d]."""

    @torch.no_grad()
    def read(self, rounds: Sequence[Ragged]) -> Tensor:
        """[T, R] as many of the likeliest tokens as rounds; their log-probabilities add up, as their noise is independent."""
        self.eval()
        words = torch.zeros(len(rounds[0].values), len(rounds), dtype=torch.long)
        for rows in by_length(rounds[0].lengths, BATCH):
            total = sum(self(received.take(rows)).log_softmax(1) for received in rounds)
            assert isinstance(total, Tensor)
            words[rounds[0].positions(rows)] = total.topk(len(rounds), 1).indices.cpu()
        return words


@dataclass(frozen=True)
class ReceivedWords:
    """Received words, for an attacker that knows the mechanism and has public text.

    Attributes:
        channel: channel of the words, as vectors or as ids.
        cut: number of blocks before the vectors; 0 for ids.
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
        """Words as vectors if these are readable and were sent, else as ids."""
        assert knowledge.base is not None
        assert knowledge.mechanism is not None
        assert knowledge.auxiliary is not None
        by_vector = Channel.REPRESENTATIONS in seen.channels & readable
        return cls(
            *(seen, knowledge.base, knowledge.mechanism, knowledge.auxiliary),
            channel=Channel.REPRESENTATIONS if by_vector else Channel.TOKENS,
            cut=knowledge.cut if by_vector else 0,
        )

    def simulated(self, rng: Generator) -> bool:
        """Whether the attacker can simulate the mechanism."""
        probe = self.public.tokens.take(torch.arange(1))
        return self.mechanism.simulate(self.base, probe, self.cut, rng) is not None

    def query(self, tokens: Tokens, rng: Generator) -> Ragged:
        """Vectors [T, d] for public tokens, with fresh noise."""
        return simulate_vectors(self.mechanism, self.base, tokens, self.cut, rng)

    def copied(self, rounds: Sequence[Ragged]) -> Tensor:
        """[T, R] nearest word in each round, as in `eia-nn`."""
        return torch.stack([nearest(self.base, each).cpu() for each in rounds], 1)

    def guesses(self, reader: Callable[[int], Reader]) -> list[Guess]:
        """Guesses of a reader, see `reader_guesses`; ids are converted to rows of E."""

        def vectors(values: Tensor) -> Tensor:
            values = values.to(self.base.device)
            by_vector = self.channel == Channel.REPRESENTATIONS
            return values if by_vector else self.base.embeddings[values]

        return reader_guesses(self.seen, self.channel, vectors, reader)


def nearest(base: Backbone, received: Ragged) -> Tensor:
    """[T] the word whose embedding is nearest to each vector."""
    words = base.neighbours.nearest_repeated(received.values.detach().cpu().numpy())
    return torch.from_numpy(words).to(received.values.device)


def simulate_vectors(
    mechanism: Defense | None, base: Backbone, tokens: Tokens, cut: int, rng: Generator
) -> Ragged:
    """Vectors [T, d] for public tokens, from the mechanism, or from the initial bottom if there is none."""
    simulated = mechanism.simulate(base, tokens, cut, rng) if mechanism else None
    if simulated is not None:
        return simulated
    with torch.no_grad():
        return base.bottom(tokens.ids.embedded(base.embeddings), tokens.types, cut)


def split_public(public: Tokens, sentences: int, rng: Generator) -> tuple[Tokens, Tokens]:
    """Training and held-out examples, at most `sentences` in all, drawn from public text.

    Held-out examples are from other sources, as the customer's texts are, unless there is only one source.

    Raises:
        LeakboardError: fewer than two examples.
    """
    if len(public) < 2:
        raise LeakboardError(f"needs at least 2 auxiliary texts, got {len(public)}")
    drawn = public.take(torch.from_numpy(rng.permutation(len(public))[: max(2, sentences)]))
    train = torch.from_numpy(sample_sources(drawn, 1 - HELD_OUT))
    if train.all():
        train[: max(1, round(HELD_OUT * len(drawn)))] = False
    return drawn.take(train.nonzero()[:, 0]), drawn.take((~train).nonzero()[:, 0])


def sample_sources(tokens: Tokens, share: float) -> NDArray[np.bool_]:
    """[n] True for the examples of about this share of the sources; all True if there is only one source.

    The split is that of public and customers' texts (`leakboard.bench.tasks.public_rows`), so results on the other
    examples carry over to the customers'.
    """
    sizes = tokens.lengths.tolist()
    examples = zip(
        *(torch.split(of, sizes) for of in (tokens.ids.values, tokens.special)), strict=True
    )
    texts = tuple(" ".join(map(str, ids[~added].tolist())) for ids, added in examples)
    flags = public_rows(Split(texts, np.zeros(len(texts), np.int64)), (), share)
    return flags if flags.any() else ~flags


def token_counts(tokens: Tokens, vocabulary: int) -> Tensor:
    """[V] number of occurrences of each token, without special ones."""
    return torch.bincount(tokens.ids.values[~tokens.special], minlength=vocabulary)


def concatenate(parts: Sequence[Tokens]) -> Tokens:
    """Concatenation of the examples of all parts."""
    return Tokens(
        Ragged.joined([part.ids for part in parts]),
        torch.cat([part.types for part in parts]),
        torch.cat([part.special for part in parts]),
    )


def least_squares(tokens: Tokens, codes: Tensor, query: Query, rng: Generator) -> Tensor:
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
    solution: Tensor = torch.linalg.solve(squares + ridge, products)
    return solution.float().to(codes.device)


def fit(
    inverter: Inverter,
    groups: Sequence[dict[str, object]],
    query: Query,
    tokens: Tokens,
    settings: TrainSettings,
    rng: Generator,
) -> None:
    """Trains an inverter on public tokens and simulated vectors, with fresh noise in every batch.

    The loss is the cross-entropy over tokens that are not special.

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
    readers: Sequence[Reader], query: Query, held_out: Tokens, rounds: int, rng: Generator
) -> Reader:
    """The reader with the best accuracy on held-out public text in `rounds` rounds; the first one of equals."""
    received = [query(held_out, rng) for _ in range(rounds)]
    real, truth = ~held_out.special, held_out.ids.values[:, None]
    is_right = (reader(received).reshape(len(truth), -1) == truth for reader in readers)
    right = [int(each.any(1)[real].sum()) for each in is_right]
    return readers[int(np.argmax(right))]


def reader_guesses(
    seen: Transcript,
    channel: Channel,
    vectors: Callable[[Tensor], Tensor],
    reader: Callable[[int], Reader],
) -> list[Guess]:
    """Guesses of a reader about the tokens of each split.

    Args:
        vectors: function from received values to vectors [T, d].
        reader: function from the number of rounds to the reader.
    """
    guesses = []
    for split in seen.splits(channel):
        # Ids sent in the clear are the same in every round.
        numbers = seen.rounds(channel, split)[: 1 if channel == Channel.TOKENS else None]
        blocks = [seen.collect(channel, split, r) for r in numbers]
        rounds = []
        for block in blocks:
            assert block.lengths is not None
            # Copies, since recorded arrays are read-only.
            values = vectors(torch.from_numpy(block.values.copy()))
            rounds.append(Ragged(values, torch.from_numpy(block.lengths.copy())))
        words = reader(len(rounds))(rounds).numpy()
        rows, lengths = blocks[0].rows, blocks[0].lengths
        guesses.append(Guess(Goal.INVERSION, channel, split, rows, words, lengths, view=split))
    return guesses
