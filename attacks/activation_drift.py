"""Label leakage along the directions in which activations vary more than before training."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from leakboard.bench.attacking import against_untrained
from leakboard.bench.contracts import Channel, Goal, Guess, Knows, Measure, ThreatModel, Transcript
from leakboard.bench.methods import Attack, Knowledge, Source

Floats = NDArray[np.float64]

SHRINK = 0.1
"""Added to every variance at the start, in units of their mean. Less suits distance correlation a
little better, more P³EFT; at 1 and more what varied much before training wins again."""
DIRECTIONS = 3
"""So many are looked at. Under P³EFT the first is one that its regulariser makes, and the second tells
the label, from a single adapter; under distance correlation the first two share it."""


class ActivationDrift(Attack):
    """Ranks texts along the directions w of the largest wᵀC_t w / wᵀC_0 w.

    C_t is the covariance of h(x, θ_t), C_0 that of h(x, θ_0): generalised eigenvectors. A defense that
    keeps labels out of the directions of large variance leaves them in one that hardly varied before.
    Where several moved, the label need not lie along one of them: their independent components (the
    least Gaussian mixtures) are looked at, too. Chance counts all that was looked at.
    """

    name: ClassVar[str] = "activation-drift"
    source: ClassVar[Source] = Source("Leakboard", "adaptive attack on activations over an API")
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals=frozenset({Goal.LABEL}),
        reads=frozenset({Channel.RECOMPUTED}),
        knows=frozenset({Knows.BASE_WEIGHTS}),
    )
    measure: ClassVar[Measure] = "auc"

    def guess(
        self, seen: Transcript, knowledge: Knowledge, rng: np.random.Generator
    ) -> list[Guess]:
        found = []
        for matrix, untrained in against_untrained(seen):
            moved = drift(matrix.values, untrained)
            for ranks in (*moved.T, *components(moved).T):
                found.append(matrix.guess(self.measure, matrix.rows, ranks))
        return found


def drift(x: NDArray[np.float32], before: NDArray[np.float32]) -> Floats:
    """[n, k] centred rows of `x` [n, d] along those directions that vary most against `before` [n, d].

    Each coordinate has variance 1, or 0 where nothing varies.
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
    """[n, k] independent components of coordinates [n, k]; none where fewer than two of them vary."""
    from sklearn.decomposition import FastICA  # here, since it takes a second to load
    from sklearn.exceptions import ConvergenceWarning

    if np.linalg.matrix_rank(moved) < moved.shape[1] or moved.shape[1] < 2:
        return moved[:, :0]
    unmixed = FastICA(moved.shape[1], whiten="unit-variance", fun="cube", random_state=0)
    with warnings.catch_warnings():  # one that stopped early still has something to say
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(unmixed.fit_transform(moved))
