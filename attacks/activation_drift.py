"""activation-drift: label inference along directions whose variance grew during training."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg import eigh

from leakboard.bench.attacking import against_untrained
from leakboard.bench.contracts import Channel, Goal, Guess, Knows, Measure, ThreatModel, Transcript
from leakboard.bench.methods import Attack, Knowledge, Source

Floats = NDArray[np.float64]

SHRINK = 0.1
"""Added to every variance before training, in units of their mean. Smaller values suit distance correlation
slightly better, larger ones P³EFT; from 1 on, directions dominate that varied much before training."""
DIRECTIONS = 3
"""Number of directions. For one adapter of P³EFT the first is created by its regulariser, and the second
reveals the label; under distance correlation the first two do."""


class ActivationDrift(Attack):
    """Rank texts along the directions w with the largest wᵀC_t w / wᵀC_0 w.

    C_t is the covariance of h(x, θ_t), C_0 that of h(x, θ_0), so these are generalised eigenvectors. A defense
    that removes labels from the directions of large variance leaves them in one that hardly varied before. If
    several directions changed, the label may be a mixture of them, so their independent components are tried,
    too. The chance level accounts for all directions.
    """

    name: ClassVar[str] = "activation-drift"
    source: ClassVar[Source] = Source("Leakboard", "adaptive attack on activations over an API")
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals={Goal.LABEL}, reads={Channel.RECOMPUTED}, knows={Knows.BASE_WEIGHTS}
    )
    measure: ClassVar[Measure] = "auc"

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        found = []
        for matrix, untrained in against_untrained(seen):
            moved = drift(matrix.values, untrained)
            for ranks in (*moved.T, *components(moved).T):
                found.append(matrix.guess(self.measure, matrix.rows, ranks))
        return found


def drift(x: NDArray[np.float32], before: NDArray[np.float32]) -> Floats:
    """[n, k] centred rows of `x` [n, d] along the directions whose variance grew most compared to `before` [n, d].

    Each coordinate has variance 1, or 0 if it does not vary.
    """
    now, then = (rows.astype(np.float64) - rows.mean(0) for rows in (x, before))
    covariance, start = now.T @ now / len(now), then.T @ then / len(then)
    d = len(start)
    least = max(SHRINK * float(np.trace(start)) / d, float(np.finfo(np.float32).tiny))
    which = [d - min(DIRECTIONS, d), d - 1]
    _, w = eigh(covariance, start + least * np.eye(d), subset_by_index=which)
    along = now @ w[:, ::-1]
    return np.asarray(along / np.maximum(along.std(0), np.finfo(np.float32).tiny))


def components(moved: Floats) -> Floats:
    """[n, k] independent components of coordinates [n, k]; none if fewer than two of them vary."""
    from sklearn.decomposition import FastICA  # here, since it takes a second to load
    from sklearn.exceptions import ConvergenceWarning

    if np.linalg.matrix_rank(moved) < moved.shape[1] or moved.shape[1] < 2:
        return moved[:, :0]
    unmixed = FastICA(moved.shape[1], whiten="unit-variance", fun="cube", random_state=0)
    with warnings.catch_warnings():  # a result without convergence is still useful
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(unmixed.fit_transform(moved))
