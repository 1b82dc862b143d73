"""A law of noise on word embeddings with three parameters, which is estimated without knowing the mechanism."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

BINS, CHUNK, STEPS = 200, 256, 25
START = 0.1
"""Smallest value of the two rates from which their logarithms are fitted."""


@dataclass(frozen=True)
class Expected:
    """Expected sums over received vectors and the words behind them.

    Attributes:
        distance, squared: of distances and squared distances.
        same: number of words that stayed.
        words: [N] number of times that each word was sent.
    """

    distance: Tensor
    squared: Tensor
    same: Tensor
    words: Tensor

    def __add__(self, other: Expected) -> Expected:
        return Expected(
            self.distance + other.distance,
            self.squared + other.squared,
            self.same + other.same,
            self.words + other.words,
        )


@dataclass(frozen=True)
class NoiseLaw:
    """log p(y | x) = −a r − b r² + s [y = x] − log Z(x), where r is the distance of the received vector y from word x.

    Outputs are the rows of E, with a word that may stay (s), or all vectors (without s). b = 0 is the law of dχ-privacy,
    and a = 0 is Gaussian. Z(x) sums over the outputs by their distance from x.

    Attributes:
        distances: [BINS] distances.
        outputs: [N, BINS] logarithm of the number of outputs at each distance from each of N words, x itself aside; or
            [1, BINS] logarithm of the volume.
        atom: outputs are rows.
        weights: [3] a, b and s.
    """

    distances: Tensor
    outputs: Tensor
    atom: bool
    weights: Tensor

    @classmethod
    def between_rows(cls, words: Tensor, rows: Tensor) -> NoiseLaw:
        """The law for words [N, d] that are replaced by rows [V, d]; at the start half of them stay."""
        squares, norms = rows.square().sum(1), words.square().sum(1)
        width = (2 * float(squares.max().sqrt())) / BINS
        counts = torch.zeros(len(words), BINS)
        for at in torch.split(torch.arange(len(words)), CHUNK):
            squared = torch.addmm(squares, words[at], rows.T, alpha=-2).add_(norms[at, None])
            bins = (squared.clamp_(min=0).sqrt_() / width).long().clamp_(max=BINS - 1)
            bins += BINS * torch.arange(len(at))[:, None]
            counts[at] = (
                torch.bincount(bins.flatten(), minlength=BINS * len(at)).view(-1, BINS).float()
            )
        counts[:, 0] -= 1
        distances = width * (torch.arange(BINS) + 0.5)
        start = torch.tensor([1.0, START, -torch.inf])
        law = cls(distances, counts.clamp(min=0).log(), True, start)
        start[2] = law.log_norm.mean()
        return cls(distances, law.outputs, True, start)

    @classmethod
    def around_rows(cls, width: int, usual: float) -> NoiseLaw:
        """The law for vectors of some width, which are a usual distance from a row."""
        distances = 4 * usual * (torch.arange(BINS) + 0.5) / BINS
        outputs = (width - 1) * distances.log() + (2 * distances[0]).log()
        start = torch.tensor([width / usual / 2, width / usual**2 / 4, 0.0])
        return cls(distances, outputs[None], False, start)

    @cached_property
    def log_norm(self) -> Tensor:
        """[N] or [1] log Z(x)."""
        return self._log_norm(*self.weights)

    def _log_norm(self, a: Tensor, b: Tensor, s: Tensor) -> Tensor:
        others = torch.logsumexp(self.outputs - a * self.distances - b * self.distances**2, 1)
        return torch.logaddexp(others, s) if self.atom else others

    def scores(self, distances: Tensor, same: Tensor) -> Tensor:
        """[t, N] log p(y | x) for distances [t, N] of t vectors from the words; `same` [t, N] is true where y = x."""
        a, b, s = self.weights
        changed = -a * distances - b * distances**2
        return torch.where(same, s, changed) - self.log_norm

    def fitted(self, expected: Expected) -> NoiseLaw:
        """The law that maximises the expected log-likelihood."""
        raw = torch.cat([self.weights[:2].clamp(min=START).log(), self.weights[2:]])
        raw.requires_grad_()
        optimiser = torch.optim.LBFGS([raw], max_iter=STEPS, line_search_fn="strong_wolfe")
        n = expected.words.sum()

        def loss() -> float:
            optimiser.zero_grad()
            a, b = raw[:2].exp()
            norm = (expected.words * self._log_norm(a, b, raw[2])).sum()
            value = a * expected.distance + b * expected.squared - raw[2] * expected.same + norm
            (value / n).backward()
            return float(value.detach() / n)

        optimiser.step(loss)  # type: ignore[no-untyped-call]
        raw = raw.detach()
        return replace(self, weights=torch.cat([raw[:2].exp(), raw[2:]]))
