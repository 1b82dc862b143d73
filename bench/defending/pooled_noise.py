"""Mechanism and guarantee of defenses that send one noisy vector per text (DPNR, CAPE)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor, nn

from leakboard.bench.backbones import Backbone, Ragged, Tokens
from leakboard.bench.contracts import WITH_HEAD, Claim, Objective
from leakboard.bench.defending.mechanisms import Epsilon
from leakboard.bench.exchange import Predictor
from leakboard.bench.methods import Conditions, Defense


def rescale_rows(vectors: Tensor) -> Tensor:
    """Rows of [n, d], each scaled to [0, 1] by its minimum and maximum; a constant row becomes 0."""
    low, high = vectors.amin(1, keepdim=True), vectors.amax(1, keepdim=True)
    return (vectors - low) / (high - low).clamp(min=torch.finfo(vectors.dtype).tiny)


def laplace(n: int, width: int, epsilon: float, rng: Generator) -> Tensor:
    """[n, width] independent noise from Laplace(0, 1/ε), by NumPy as in `dx_noise`."""
    return torch.from_numpy(rng.laplace(0.0, 1 / epsilon, (n, width)).astype(np.float32))


def drop_words(tokens: Tokens, rate: float, rng: Generator) -> Tokens:
    """Examples without randomly dropped words, each dropped with probability `rate`.

    Special tokens stay. An example that would lose all its tokens keeps the first.
    """
    stays = torch.from_numpy(rng.random(len(tokens.special)) >= rate) | tokens.special
    ids = tokens.ids
    example = torch.repeat_interleave(torch.arange(len(tokens)), ids.lengths)
    lengths = torch.bincount(example[stays], minlength=len(tokens))
    stays[ids.starts[(lengths == 0) & (ids.lengths > 0)]] = True
    lengths = torch.bincount(example[stays], minlength=len(tokens))
    return Tokens(Ragged(ids.values[stays], lengths), tokens.types[stays], tokens.special[stays])


def amplified_epsilon(epsilon: float, rate: float) -> float:
    """ln((1 − μ)e^ε + μ): ε for a word that is dropped with probability μ (DPNR, theorem 2)."""
    left = epsilon + math.log1p(-rate)
    return left if rate == 0 else float(np.logaddexp(left, math.log(rate)))


def as_sequences(vectors: Tensor) -> Ragged:
    """Vectors [n, d] of n texts, as sequences of length 1."""
    return Ragged(vectors, torch.ones(len(vectors), dtype=torch.long))


class Served(Predictor):
    """A predictor with a trained customer's side that also encodes other texts.

    Args:
        sent: function from n texts and a generator to the vectors [n, d] that are sent.
    """

    def __init__(
        self,
        score: Callable[[Tokens, Tensor, str], Tensor],
        sent: Callable[[Tokens, Generator], Tensor],
        *networks: nn.Module,
    ) -> None:
        super().__init__(score, *networks)
        self.sent = sent

    @torch.no_grad()
    def sends(self, tokens: Tokens, rng: Generator) -> Ragged | None:
        return as_sequences(self.sent(tokens, rng))


class Pooling(Defense):
    """The customer runs the encoder and sends one vector per text, scaled to [0, 1] and with noise."""

    epsilon: Epsilon = 1.0
    """ε of each dimension, above 0; smaller hides more; "none" sends without noise."""
    as_released: bool = False
    """Follow the authors' code instead of the paper; see `noise`."""

    objectives: ClassVar[frozenset[Objective]] = WITH_HEAD
    knob: ClassVar[str | None] = "epsilon"
    public: ClassVar[bool] = True
    """Whether the encoder and the mechanism suffice to simulate what is sent."""
    flaw: ClassVar[str]
    """What the released code does not protect, as part of a sentence."""

    def skip(self, conditions: Conditions) -> str | None:
        return (
            f"the customer runs the whole encoder of {self.name}; set cut: 0"
            if conditions.cut
            else None
        )

    @abstractmethod
    def noise(self, n: int, width: int, rng: Generator) -> Tensor:
        """[n, width] noise for n vectors; called only if ε is not "none"."""

    def noisy(self, vectors: Tensor, rng: Generator) -> Tensor:
        """Vectors [n, d] in [0, 1], with fresh noise."""
        if self.epsilon is None:
            return vectors
        return vectors + self.noise(len(vectors), vectors.shape[1], rng).to(vectors.device)

    def public_vectors(self, base: Backbone, tokens: Tokens, rng: Generator) -> Tensor:
        """[n, d] vectors of public texts in [0, 1] from the initial encoder, before noise is added."""
        return rescale_rows(base.pooled(tokens))

    def simulate(self, base: Backbone, tokens: Tokens, cut: int, rng: Generator) -> Ragged | None:
        return as_sequences(self.noisy(self.public_vectors(base, tokens, rng), rng))

    def guarantee(self, width: int, dropout: float = 0.0, times: int = 1) -> Claim | None:
        """The claim for vectors of `width` dimensions.

        Args:
            dropout: probability with which a word is dropped.
            times: number of times that each text is sent in training, with fresh noise each time.
        """
        if self.epsilon is None:
            return None
        epsilon = amplified_epsilon(self.epsilon, dropout)
        texts = "any two texts" if not dropout else "two texts that differ in one word"
        repetition = f"; each text is sent {times} times, which adds up" if times > 1 else ""
        if self.as_released:
            return Claim(
                guarantee="local differential privacy of one dimension taken alone",
                parameters={"epsilon_per_dimension": epsilon},
                covers=f"{texts}{repetition}; not {self.flaw}; labels are not covered",
                unit="vector",
            )
        return Claim(
            guarantee="local differential privacy",
            parameters={
                "epsilon_per_dimension": epsilon,
                "epsilon_per_vector": amplified_epsilon(width * self.epsilon, dropout),
            },
            covers=f"one dimension, or the vector of {width} dimensions, of {texts}{repetition}; labels are "
            "not covered",
            unit="vector",
        )
