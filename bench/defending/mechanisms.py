"""Noise mechanisms that several defenses share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field
from torch import Tensor

from leakboard.bench.backbones import CHUNK, Neighbours

Eta = Annotated[
    Annotated[float, Field(gt=0)] | None, BeforeValidator(lambda v: None if v == "none" else v)
]
"""Privacy parameter η of dχ-privacy; None, or "none" in a suite, for no noise."""
Epsilon = Eta
"""Privacy parameter ε, likewise."""
SEARCHED = 256
"""Different words whose distances to all candidates are held at once."""


def dx_noise(n: int, width: int, eta: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """Noise for dχ-privacy: [n, width] with density ∝ exp(−η‖noise‖), independent per row.

    Each row has its own radius, drawn from Gamma(shape width, scale 1/η), and its own direction,
    uniform on the sphere, so the mean norm is width/η (Feyisetan et al. 2020, section 2.6).
    Drawn by NumPy, so a seed gives the same noise on every device.
    """
    radius = rng.gamma(width, 1 / eta, n)
    noise = rng.standard_normal((n, width), dtype=np.float32)
    # In place: this array is the largest thing in memory while a corpus is privatised.
    noise *= (radius / np.sqrt(np.einsum("nd,nd->n", noise, noise)))[:, None].astype(np.float32)
    return noise


def privatise_tokens(
    ids: Tensor, embeddings: Tensor, neighbours: Neighbours, eta: float, rng: np.random.Generator
) -> Tensor:
    """Replaces each token by the one whose embedding is nearest to its own plus dχ noise.

    Works in chunks, so memory is bounded whatever the number of tokens.

    Args:
        ids: [T] token ids.
        embeddings: [V, d] word embeddings; `neighbours` is built on the same rows.
        eta: privacy parameter η > 0; smaller hides more.

    Returns:
        [T] token ids on the device of `ids`.
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
    """[n, C] the probability ∝ exp(−ε/2 · d(x, y)) of each candidate y for each word x.

    The exponential mechanism with Euclidean distance of word embeddings for a score; it keeps ε·d-privacy
    among words that share their candidates (Yue et al. 2021, theorem 1).

    Args:
        words: [n] ids; `among` [C] those of the candidates.
        embeddings: [V, d].
    """
    return (-epsilon / 2 * distances(words, among, embeddings).double()).softmax(1)


def distances(words: Tensor, among: Tensor, embeddings: Tensor) -> Tensor:
    """[n, C] Euclidean distances of the embeddings of words [n] and [C]."""
    rows = embeddings.detach().float()
    words, among = words.to(rows.device), among.to(rows.device)
    far = torch.cdist(rows[words], rows[among])
    # Exactly 0 there: rounding would add a distance where there is none.
    return far.masked_fill(words[:, None] == among, 0.0)


def draw_words(
    ids: Tensor, weights: Callable[[Tensor], tuple[Tensor, Tensor]], rng: np.random.Generator
) -> Tensor:
    """[T] for each word one that is drawn for it, independently of all others.

    Args:
        ids: [T].
        weights: for different words [n] the candidates of each, [C] or [n, C], and their
            probabilities [n, C].
    """
    different, place = np.unique(ids.cpu().numpy(), return_inverse=True)
    uniform, out = rng.random(len(ids)), np.empty(len(ids), np.int64)
    # The occurrences of each word stand together.
    order = place.argsort(kind="stable")
    ends = np.bincount(place, minlength=len(different)).cumsum()
    for at in range(0, len(different), SEARCHED):
        some = different[at : at + SEARCHED]
        among, chances = (part.cpu().numpy() for part in weights(torch.from_numpy(some)))
        for i, up_to in enumerate(chances.cumsum(1)):
            own = order[ends[at + i - 1] if at + i else 0 : ends[at + i]]
            # Sums end a little beside 1; behind the last that can be drawn there may be others.
            hit = np.searchsorted(up_to, uniform[own] * up_to[-1], side="right")
            last = np.searchsorted(up_to, up_to[-1])
            out[own] = np.broadcast_to(among, chances.shape)[i][hit.clip(max=last)]
    return torch.from_numpy(out).to(ids.device)
