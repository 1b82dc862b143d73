"""Mechanism and guarantee of defenses that send one noisy vector per text (DPNR, CAPE)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from leakboard.bench.backbones import Backbone, Ragged, Tokens
from leakboard.bench.contracts import WITH_HEAD, Claim, Objective
from leakboard.bench.defending.mechanisms import Epsilon
from leakboard.bench.exchange import Predictor
from leakboard.bench.methods import Conditions, Defense


def rescale_rows(vectors: Tensor) -> Tensor:
    """Each row of [n, d] brought to [0, 1] by its own least and greatest number.

    The same for a·v + b with any a > 0 and b. A row of equal numbers becomes 0, not NaN.
    """
    low, high = vectors.amin(1, keepdim=True), vectors.amax(1, keepdim=True)
    return (vectors - low) / (high - low).clamp(min=torch.finfo(vectors.dtype).tiny)


def laplace(n: int, width: int, epsilon: float, rng: np.random.Generator) -> Tensor:
    """[n, width] independent noise, each number from Laplace(0, 1/ε). Drawn by NumPy, as `dx_noise` is."""
    return torch.from_numpy(rng.laplace(0.0, 1 / epsilon, (n, width)).astype(np.float32))


def drop_words(tokens: Tokens, rate: float, rng: np.random.Generator) -> Tokens:
    """Examples that words have left, each with the probability `rate`: the sequences get shorter.

    Special tokens stay. An example without any that would lose all its words keeps the first.
    """
    kept = torch.from_numpy(rng.random(len(tokens.special)) >= rate) | tokens.special
    ids = tokens.ids
    example = torch.repeat_interleave(torch.arange(len(tokens)), ids.lengths)
    lengths = torch.bincount(example[kept], minlength=len(tokens))
    kept[ids.starts[(lengths == 0) & (ids.lengths > 0)]] = True
    lengths = torch.bincount(example[kept], minlength=len(tokens))
    return Tokens(Ragged(ids.values[kept], lengths), tokens.types[kept], tokens.special[kept])


def amplified_epsilon(epsilon: float, rate: float) -> float:
    """ln((1 − μ)e^ε + μ): what ε becomes for a word that is dropped with probability μ (DPNR, theorem 2)."""
    left = epsilon + math.log1p(-rate)
    return left if rate == 0 else float(np.logaddexp(left, math.log(rate)))


def as_sequences(vectors: Tensor) -> Ragged:
    """Vectors [n, d] of n texts, as sequences of length 1."""
    return Ragged(vectors, torch.ones(len(vectors), dtype=torch.long))


class Served(Predictor):
    """A predictor whose customer's side others may use as training left it: it sends vectors of their own texts.

    Args:
        sent: vectors [n, d] of n texts, as they are sent; draws what it draws from the generator.
    """

    def __init__(
        self,
        score: Callable[[Tokens, Tensor, str], Tensor],
        sent: Callable[[Tokens, np.random.Generator], Tensor],
        *networks: nn.Module,
    ) -> None:
        super().__init__(score, *networks)
        self.sent = sent

    @torch.no_grad()
    def sends(self, tokens: Tokens, rng: np.random.Generator) -> Ragged | None:
        return as_sequences(self.sent(tokens, rng))


class Pooling(Defense):
    """The customer runs the encoder and sends one vector per text, brought to [0, 1] and made noisy."""

    epsilon: Epsilon = 1.0
    """ε of each dimension, above 0; smaller hides more; "none" sends without noise."""
    as_released: bool = False
    """As the authors' code does it, and not as the paper says; see `noise`."""

    objectives: ClassVar[frozenset[Objective]] = WITH_HEAD
    knob: ClassVar[str | None] = "epsilon"
    public: ClassVar[bool] = True
    """Whether who knows the encoder and the mechanism can make for himself what is sent of a text."""
    flaw: ClassVar[str]
    """What the released code leaves open, as part of a sentence."""

    def skip(self, conditions: Conditions) -> str | None:
        return (
            f"the customer runs the whole encoder of {self.name}; set cut: 0"
            if conditions.cut
            else None
        )

    @abstractmethod
    def noise(self, n: int, width: int, rng: np.random.Generator) -> Tensor:
        """[n, width] what is added to n vectors when they are sent once; ε is not "none"."""

    def noisy(self, vectors: Tensor, rng: np.random.Generator) -> Tensor:
        """Vectors [n, d] in [0, 1], with fresh noise."""
        if self.epsilon is None:
            return vectors
        return vectors + self.noise(len(vectors), vectors.shape[1], rng).to(vectors.device)

    def public_vectors(self, base: Backbone, tokens: Tokens, rng: np.random.Generator) -> Tensor:
        """[n, d] in [0, 1], what the initial encoder makes of public texts before noise is added."""
        return rescale_rows(base.pooled(tokens))

    def simulate(
        self, base: Backbone, tokens: Tokens, cut: int, rng: np.random.Generator
    ) -> Ragged | None:
        return as_sequences(self.noisy(self.public_vectors(base, tokens, rng), rng))

    def guarantee(self, width: int, dropout: float = 0.0, times: int = 1) -> Claim | None:
        """The claim for vectors of so many dimensions.

        Args:
            dropout: probability with which a word leaves the text.
            times: how often each text is sent while fine-tuning, each time with fresh noise.
        """
        if self.epsilon is None:
            return None
        one = amplified_epsilon(self.epsilon, dropout)
        texts = "any two texts" if not dropout else "two texts that differ in one word"
        again = f"; each text is sent {times} times, which adds up" if times > 1 else ""
        if self.as_released:
            return Claim(
                guarantee="local differential privacy of one dimension taken alone",
                parameters={"epsilon_per_dimension": one},
                covers=f"{texts}{again}; not {self.flaw}; labels are not covered",
                unit="vector",
            )
        return Claim(
            guarantee="local differential privacy",
            parameters={
                "epsilon_per_dimension": one,
                "epsilon_per_vector": amplified_epsilon(width * self.epsilon, dropout),
            },
            covers=f"one dimension, or the vector of {width} dimensions, of {texts}{again}; labels are "
            "not covered",
            unit="vector",
        )
