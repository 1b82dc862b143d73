"""Linear discriminant from vectors at a cut to words, fitted on random words."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding

from leakboard.bench.backbones import Backbone, Ragged

PER_DIMENSION = 32
"""Random words to fit on, for each coordinate of a vector."""
LENGTH = 16
"""Words of a sequence."""
BATCH = 128
SHRINK = 0.5
"""Added to every variance, in units of their mean: guards directions that few sequences show, and
leaves room for noise, whose size is unknown. Between 0.1 and 1 little changes on MiniLM."""
RIDGE = 1e-6
"""Of the fit, relative to the number of words: a small vocabulary does not span d coordinates."""
SURE = 1000.0
"""By how much the known special tokens are ahead of all others, in units of log-likelihood."""


class Discriminant:
    """How likely each word is behind a received vector, whatever its neighbours are.

    A vector is taken as B·e(word) + c + context, where the context is Gaussian with one covariance
    for all words: Fisher's linear discriminant with the means of all V classes on an affine image
    of E. B, c and the covariance are fit on sequences of random words through the initial bottom,
    between the special tokens that the tokeniser sets around a text.

    Attributes:
        frame: ids of the special tokens in front of a text, and behind it.
        centre: [d] the mean vector at the cut.
    """

    def __init__(self, base: Backbone, cut: int, rng: np.random.Generator) -> None:
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
        rest = h - x @ fitted
        covariance = rest.T @ rest / len(rest)
        covariance += SHRINK * covariance.diagonal().mean() * torch.eye(d, dtype=torch.float64)
        whiten = torch.linalg.cholesky(torch.linalg.inv(covariance))
        self.whiten = whiten.float().to(device)
        self.centre = h.mean(0).float().to(device)
        self.offset = fitted[-1].float().to(device)
        self.codes = rows @ (fitted[:-1] @ whiten).float().to(device)
        self.half_squares = self.codes.square().sum(1) / 2

    def scores(self, received: Ragged) -> Tensor:
        """[t, V] log-likelihood of every word behind vectors [t, d], but for a constant of each.

        The ends of an example are the frame, which is no secret.
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


def _affine(x: Tensor) -> Tensor:
    return torch.cat([x, x.new_ones(len(x), 1)], 1)


def _frame(base: Backbone) -> tuple[list[int], list[int]]:
    """Ids of what the tokeniser sets in front of a text, and behind it."""
    tokenizer = base.tokenizer
    ids = tokenizer("")["input_ids"]
    opening = (tokenizer.cls_token_id, tokenizer.bos_token_id)
    return [i for i in ids if i in opening], [i for i in ids if i not in opening]


def _random_pairs(
    base: Backbone, cut: int, frame: tuple[list[int], list[int]], rng: np.random.Generator
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
    found = h.values.view(BATCH, ids.shape[1], -1)[:, front.shape[1] :][:, :LENGTH]
    return words.flatten(), found.flatten(0, 1)
