"""Linear discriminant from vectors at a cut to words, fitted on random words."""

from __future__ import annotations

import torch
from numpy.random import Generator
from torch import Tensor
from torch.nn.functional import embedding

from leakboard.bench.backbones import Backbone, Ragged

PER_DIMENSION = 32
"""Number of random words in the fit, per coordinate of a vector."""
LENGTH = 16
"""Words of a sequence."""
BATCH = 128
SHRINK = 0.5
"""Added to every variance, in units of their mean, for rare directions and unknown noise. Values from 0.1 to 1 give
similar results on MiniLM."""
RIDGE = 1e-6
"""Ridge of the fit, relative to the number of words: a small vocabulary does not span d coordinates."""
SURE = 1000.0
"""Lead in log-likelihood of the known special tokens over all other words."""


class Discriminant:
    """Likelihood of each word given a received vector, without regard to its neighbours.

    The model of a vector is B·e(word) + c + context, where the context is Gaussian with one covariance for all words.
    This is Fisher's linear discriminant with class means on an affine image of E. B, c and the covariance are fitted
    on sequences of random words, with the special tokens of the tokeniser, through the initial bottom.

    Args:
        robust: scale what is added to every variance by their median; in large causal models single coordinates
            vary a thousand times more than others, and would hide all others with the mean.

    Attributes:
        frame: ids of the special tokens before and after a text.
        centre: [d] mean vector at the cut.
    """

    def __init__(self, base: Backbone, cut: int, rng: Generator, robust: bool = False) -> None:
        rows, d, device = base.embeddings, base.width, base.embeddings.device
        self.frame = _frame(base)
        parts = [
            _random_pairs(base, cut, self.frame, rng)
            for _ in range(-(-PER_DIMENSION * d // (BATCH * LENGTH)))
        ]
        words = torch.cat([words for words, _ in parts])
        h = torch.cat([h for _, h in parts]).cpu().double()
        x = _affine(rows[words.to(device)]).cpu().double()
        ridge = RIDGE * len(x) * torch.eye(x.shape[1], dtype=torch.float64)
        fitted = torch.linalg.solve(x.T @ x + ridge, x.T @ h)
        residuals = h - x @ fitted
        covariance = residuals.T @ residuals / len(residuals)
        variances = covariance.diagonal()
        typical = variances.median() if robust else variances.mean()
        covariance += SHRINK * typical * torch.eye(d, dtype=torch.float64)
        whiten = torch.linalg.cholesky(torch.linalg.inv(covariance))
        self.whiten = whiten.float().to(device)
        self.centre = h.mean(0).float().to(device)
        self.offset = fitted[-1].float().to(device)
        self.codes = rows @ (fitted[:-1] @ whiten).float().to(device)
        self.half_squares = self.codes.square().sum(1) / 2

    def scores(self, received: Ragged) -> Tensor:
        """[t, V] log-likelihood of every word given vectors [t, d], up to a constant per vector.

        The special tokens at both ends of an example are known.
        """
        scores: Tensor = (
            received.values - self.offset
        ) @ self.whiten @ self.codes.T - self.half_squares
        front, back = self.frame
        ends = received.starts + received.lengths
        for first, words in ((received.starts, front), (ends - len(back), back)):
            for i, word in enumerate(words):
                at = (first + i).to(scores.device)
                sure = scores[at].amax(1) + SURE
                scores[at, word] = sure
        return scores

    def scores_after(self, received: Tensor, words: Tensor, outputs: Tensor) -> Tensor:
        """[V] log-likelihood of every word behind one vector [d], given the outputs [c, d] of some words [c].

        Their mean residual is the influence of the context, which is the same for all words.
        """
        context = ((outputs - self.offset) @ self.whiten - self.codes[words]).mean(0)
        code = (received - self.offset) @ self.whiten - context
        scores: Tensor = self.codes @ code - self.half_squares
        return scores


def _affine(x: Tensor) -> Tensor:
    return torch.cat([x, x.new_ones(len(x), 1)], 1)


def _frame(base: Backbone) -> tuple[list[int], list[int]]:
    """Ids of the special tokens before and after a text."""
    tokenizer = base.tokenizer
    ids = tokenizer("")["input_ids"]
    opening = (tokenizer.cls_token_id, tokenizer.bos_token_id)
    return [i for i in ids if i in opening], [i for i in ids if i not in opening]


def _random_pairs(
    base: Backbone, cut: int, frame: tuple[list[int], list[int]], rng: Generator
) -> tuple[Tensor, Tensor]:
    """Random words and their vectors [·, d] at the cut."""
    rows = base.embeddings
    words = torch.from_numpy(rng.integers(len(rows), size=(BATCH, LENGTH)))
    front, back = (torch.tensor(ids, dtype=torch.long).repeat(BATCH, 1) for ids in frame)
    ids = torch.cat([front, words, back], 1)
    vectors = embedding(ids.flatten().to(rows.device), rows)
    lengths = torch.full((BATCH,), ids.shape[1])
    with torch.no_grad():
        h = base.bottom(Ragged(vectors, lengths), torch.zeros(ids.numel(), dtype=torch.long), cut)
    middle = h.values.view(BATCH, ids.shape[1], -1)[:, front.shape[1] :][:, :LENGTH]
    return words.flatten(), middle.flatten(0, 1)
