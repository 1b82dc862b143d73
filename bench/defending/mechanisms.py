"""Noise mechanisms that several defenses share."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field
from torch import Tensor

from bench.backbones import CHUNK, Neighbours

Eta = Annotated[
    Annotated[float, Field(gt=0)] | None, BeforeValidator(lambda v: None if v == "none" else v)
]
"""Privacy parameter η of dχ-privacy; None, or "none" in a suite, for no noise."""


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
