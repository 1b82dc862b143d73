"""Noise mechanisms of several defenses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field
from torch import Tensor

from leakboard.bench.backbones import CHUNK, Neighbours

Eta = Annotated[
    Annotated[float, Field(gt=0)] | None, BeforeValidator(lambda v: None if v == "none" else v)
]
"""Privacy parameter η of dχ-privacy; None, or "none" in a suite, for no noise."""
Epsilon = Eta
"""Privacy parameter ε; None, or "none" in a suite, for no noise."""
SEARCHED = 256
"""Number of distinct words whose distances to all candidates are in memory at once."""


def dx_noise(n: int, width: int, eta: float, rng: Generator) -> NDArray[np.float32]:
    """Noise for dχ-privacy: [n, width] with density ∝ exp(−η‖noise‖), independent per row.

    The radius has the distribution Gamma(shape width, scale 1/η), and the direction is uniform on the sphere, so the
    mean norm is width/η (Feyisetan et al. 2020, section 2.6). NumPy gives the same noise on every device.
    """
    radius = rng.gamma(width, 1 / eta, n)
    noise = rng.standard_normal((n, width), dtype=np.float32)
    # In place, since this is the largest array.
    noise *= (radius / np.sqrt(np.einsum("nd,nd->n", noise, noise)))[:, None].astype(np.float32)
    return noise


def privatise_tokens(
    ids: Tensor, embeddings: Tensor, neighbours: Neighbours, eta: float, rng: Generator
) -> Tensor:
    """[T] tokens whose embeddings are nearest to the noisy embeddings of `ids`, computed in chunks.

    Args:
        ids: [T] token ids.
        embeddings: [V, d] word embeddings; `neighbours` is built on the same rows.
        eta: privacy parameter η > 0; smaller hides more.
    """
    rows = embeddings.detach().float().cpu().numpy()
    out = torch.empty_like(ids)
    for at in range(0, len(ids), CHUNK):
        chunk = ids[at : at + CHUNK].cpu().numpy()
        noisy = dx_noise(len(chunk), rows.shape[1], eta, rng)
        noisy += rows[chunk]
        out[at : at + CHUNK] = torch.from_numpy(neighbours.nearest(noisy)).to(ids.device)
    return out


def exponential_weights(words: Tensor, among: Tensor, embeddings: Tensor, epsilon: float) -> Tensor:
    """[n, C] probability ∝ exp(−ε/2 · d(x, y)) of each candidate y for each word x.

    This is the exponential mechanism with Euclidean distances of word embeddings. It satisfies ε·d-privacy among words
    with the same candidates (Yue et al. 2021, theorem 1).

    Args:
        words: [n] ids.
        among: [C] ids of the candidates.
        embeddings: [V, d].
    """
    return (-epsilon / 2 * distances(words, among, embeddings).cpu().double()).softmax(1)


def distances(words: Tensor, among: Tensor, embeddings: Tensor) -> Tensor:
    """[n, C] Euclidean distances of the embeddings of words [n] and [C]."""
    rows = embeddings.detach().float()
    words, among = words.to(rows.device), among.to(rows.device)
    far = torch.cdist(rows[words], rows[among])
    # Equal words have a distance of exactly 0, without rounding errors.
    return far.masked_fill(words[:, None] == among, 0.0)


def draw_words(
    ids: Tensor, weights: Callable[[Tensor], tuple[Tensor, Tensor]], rng: Generator
) -> Tensor:
    """[T] independent random replacement of each word.

    Args:
        ids: [T].
        weights: function from distinct words [n] to their candidates, [C] or [n, C], and probabilities [n, C].
    """
    distinct, place = np.unique(ids.cpu().numpy(), return_inverse=True)
    uniform, out = rng.random(len(ids)), np.empty(len(ids), np.int64)
    # Occurrences of each word are adjacent in this order.
    order = place.argsort(kind="stable")
    ends = np.bincount(place, minlength=len(distinct)).cumsum()
    for at in range(0, len(distinct), SEARCHED):
        some = distinct[at : at + SEARCHED]
        among, chances = (part.cpu().numpy() for part in weights(torch.from_numpy(some)))
        for i, up_to in enumerate(chances.cumsum(1)):
            places = order[ends[at + i - 1] if at + i else 0 : ends[at + i]]
            # Sums may differ from 1 by rounding, and the last candidates may have probability 0.
            hit = np.searchsorted(up_to, uniform[places] * up_to[-1], side="right")
            last = np.searchsorted(up_to, up_to[-1])
            out[places] = np.broadcast_to(among, chances.shape)[i][hit.clip(max=last)]
    return torch.from_numpy(out).to(ids.device)
