"""Undoes the mixing of obfuscated gradients: an attack that no paper has."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bench.types import (
    Attack,
    Channel,
    Goal,
    Guess,
    Knowledge,
    Message,
    Source,
    ThreatModel,
    Transcript,
)


class Unmix(Attack):
    """Searches the span of the vectors that one server received for the true gradient.

    The vectors ĝ₁ … ĝₘ of a batch are noise many times larger than the gradient, which some
    combination Σ αⱼĝⱼ gives back. There the noise cancels: it is the combination of unit length
    with the smallest norm, the last eigenvector of their m × m Gram matrix. The rows of the result
    are ranked along their first principal direction, as `spectral` does.

    α is drawn anew for each batch, so the sign of each batch is unknown. The gradient of a
    logistic loss tells it: within the rows of one class, p − y rises with the activation along the
    direction of the gradient.
    """

    name: ClassVar[str] = "unmix"
    source: ClassVar[Source] = Source("Leakboard", "adaptive, against P³EFT's private backprop")
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals=frozenset({Goal.LABEL}), reads=frozenset({Channel.GRADIENTS, Channel.ACTIVATIONS})
    )
    certified_at: ClassVar[float] = 0.9

    def guess(
        self, seen: Transcript, knowledge: Knowledge, rng: np.random.Generator
    ) -> list[Guess]:
        guesses = []
        for moment in seen.moments(Channel.GRADIENTS):
            here = [m for m in seen.messages if m.moment == moment]
            adapters = len({m.part for m in here if m.channel == Channel.ACTIVATIONS})
            sent = [m for m in here if m.channel == Channel.GRADIENTS]
            each = len({m.part for m in sent}) // max(1, adapters)
            for recipient in dict.fromkeys(m.recipient for m in sent) if each else ():
                for part in range(adapters):
                    mine = [m for m in sent if m.recipient == recipient and m.part // each == part]
                    own = [m for m in here if m.channel == Channel.ACTIVATIONS and m.part == part]
                    if mine:
                        guesses.append(_guess(mine, own, moment, part, recipient))
        return guesses


def _guess(
    sent: Sequence[Message], activations: Sequence[Message], moment: int, part: int, recipient: str
) -> Guess:
    batches: dict[int, list[Message]] = {}
    for message in sent:
        batches.setdefault(message.step, []).append(message)
    found = [unmixed([m.values for m in batch]) for batch in batches.values()]
    # Batches differ in scale and sign; the direction is common to them.
    _, _, axes = np.linalg.svd(np.concatenate([g / np.linalg.norm(g) for g in found]))
    h = {m.step: m.values for m in activations}
    values = [
        _turned(g @ axes[0], h[step] @ axes[0] if step in h else None)
        for step, g in zip(batches, found, strict=True)
    ]
    rows = np.concatenate([batch[0].rows for batch in batches.values()])
    return Guess(
        Goal.LABEL,
        Channel.GRADIENTS,
        "train",
        rows,
        np.concatenate(values),
        measure="auc",
        moment=moment,
        part=part,
        recipient=recipient,
    )


def unmixed(vectors: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    """[B, d] the combination of [B, d] vectors, of coefficients of unit length, with least norm."""
    flat = np.stack([v.reshape(-1) for v in vectors]).astype(np.float64)
    _, coefficients = np.linalg.eigh(flat @ flat.T)
    found: NDArray[np.float64] = (coefficients[:, 0] @ flat).reshape(vectors[0].shape)
    return found


def _turned(p: NDArray[Any], z: NDArray[Any] | None) -> NDArray[Any]:
    """`p` [B] or its negative: that which rises with `z` within each of its two signs."""
    p = p / (np.abs(p).max() or 1.0)
    if z is None:
        return p
    slope = 0.0
    for side in (p > 0, p <= 0):
        if side.sum() > 1:
            slope += float(((p[side] - p[side].mean()) * (z[side] - z[side].mean())).sum())
    return p if slope >= 0 else -p
