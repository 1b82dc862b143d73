"""unmix: recovers a gradient that was split into several vectors, for a server that receives all of them."""

from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from leakboard.attacks.spectral import Spectral
from leakboard.bench.attacking import Matrix
from leakboard.bench.contracts import Channel, Goal, Guess, Measure, ThreatModel, Transcript
from leakboard.bench.exchange import batches
from leakboard.bench.methods import Attack, Knowledge, Source

ROUNDS = 100
"""Steps of the power iteration, which converges cubically near the solution."""
NEGLIGIBLE = 1e-12
"""Share of the largest eigenvalue below which a direction is ignored."""
Floats = NDArray[np.float64]


class Unmix(Attack):
    """Find the combination of a batch's vectors that has low rank, and rank its rows.

    With a linear head, ∂loss/∂h has rank C − 1, since every row combines differences of the head's weights; P³EFT's
    regulariser adds the same rank. Noise has full rank. So the unit combination M with the most unequal singular
    values, the largest Σσ⁴ = ‖MMᵀ‖², is the gradient up to a factor, for any secret scalars. Its sign is ambiguous
    in each batch: the attack chooses the sign for which activations have moved against the gradient, which
    becomes more reliable the longer the model is trained.
    """

    name: ClassVar[str] = "unmix"
    source: ClassVar[Source] = Source("Leakboard", "adaptive attack on P³EFT's private_backprop")
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals={Goal.LABEL}, reads={Channel.GRADIENTS, Channel.ACTIVATIONS}
    )
    measure: ClassVar[Measure] = "auc"

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        found = []
        for moment in seen.moments(Channel.GRADIENTS):
            for (recipient, _), sent in batches(seen, moment).items():
                rows = np.concatenate([batch.rows for batch in sent])
                x = np.concatenate(
                    [oriented(concentrated(b.vectors), b.activations) for b in sent]
                ).astype(np.float32)
                part = sent[0].parts[0]
                matrix = Matrix(Channel.GRADIENTS, moment, 0, part, recipient, rows, x)
                found.append(
                    matrix.guess(self.measure, rows, Spectral().read(x, knowledge.classes, rng))
                )
        return found


def concentrated(vectors: NDArray[Any]) -> Floats:
    """[B, d] the combination of `vectors` [m, B, d] of norm 1 with the most unequal singular values, up to its sign.

    Σσ⁴ is convex in the coefficients, so the power iteration on an orthonormal basis of the span never
    decreases it; it is started at each vector of that basis.
    """
    m, b, d = vectors.shape
    flat = vectors.reshape(m, -1).astype(np.float64)
    flat /= max(float(np.abs(flat).max()), np.finfo(np.float64).tiny)
    sizes, axes = np.linalg.eigh(flat @ flat.T)
    kept = sizes > NEGLIGIBLE * max(float(sizes[-1]), np.finfo(np.float64).tiny)
    if not kept.any():
        return np.zeros((b, d))
    basis = (axes[:, kept] / np.sqrt(sizes[kept])).T @ flat
    best, most = basis[0], -1.0
    for start in np.eye(len(basis)):
        a = start
        for _ in range(ROUNDS if len(basis) > 1 else 1):
            x = (a @ basis).reshape(b, d)
            step = basis @ (x @ (x.T @ x) if d < b else (x @ x.T) @ x).ravel()
            previous, a = a, step / np.linalg.norm(step)
            if abs(a @ previous) > 1 - 1e-12:
                break
        x = a @ basis
        unequal = float(np.sum(np.linalg.svd(x.reshape(b, d), compute_uv=False) ** 4))
        if unequal > most:
            best, most = x, unequal
    return np.asarray(best.reshape(b, d))


def oriented(gradient: Floats, h: NDArray[Any] | None) -> Floats:
    """The gradient with the sign for which most activations h [B, d] of the batch are opposed to it.

    Each example counts once, since long gradients are those of examples that are not learnt yet.
    """
    if h is None:
        return gradient
    v = np.linalg.svd(gradient, full_matrices=False)[2][0]
    along = float(np.sign(gradient @ v) @ ((h - h.mean(0)) @ v))
    return -gradient if along > 0 else gradient
