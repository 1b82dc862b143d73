"""Batches of rows of similar length, which saves most of the padding."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

POOL = 50
"""Batches per pool: examples are sorted by length within a pool, which saves most of the padding
and still mixes the data."""


def length_bucketed(lengths: Tensor, size: int, rng: np.random.Generator) -> list[Tensor]:
    """Batches of rows of similar length, in random order; every row occurs once.

    Args:
        lengths: [n] tokens per example.
    """
    order = rng.permutation(len(lengths))
    batches = []
    for at in range(0, len(order), POOL * size):
        pool = order[at : at + POOL * size]
        pool = pool[np.argsort(lengths.numpy()[pool], kind="stable")]
        batches += [torch.from_numpy(pool[i : i + size]) for i in range(0, len(pool), size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def by_length(lengths: Tensor, size: int = 128) -> list[Tensor]:
    """Batches for inference: rows sorted by length."""
    return list(torch.split(torch.argsort(lengths, stable=True), size))
