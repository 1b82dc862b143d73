"""Reconstruction of P³EFT's split gradients of a language model by a server that receives all vectors.

P³EFT sends m vectors in place of each gradient g_i of n adapters, whose span holds it, and mixes
h′ = Σ Wᵢ ∘ hᵢ with secret weights. But noise is far longer than what it hides, so that the shortest
combination of the m vectors is g_i but for its length; and g_i = Wᵢ ∘ g′ with Σ Wᵢ = 1, so that the g_i add up
to g′ = ∂loss/∂h′. Of two adapters one number is left to be found, the ratio of the lengths, and a public
output layer says when it is right: g′ then points from one of its rows to the mean that h′ predicts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from leakboard.bench.contracts import Channel, Ints, Message, Transcript

TRIED = 64
"""Tokens of one step by which a ratio is judged."""
WIDE, FINE = torch.linspace(-1, 1, 81), torch.linspace(-0.025, 0.025, 11)
"""Logarithms of ratios to that at which both gradients are as long: mixing weights are of one law."""

Aligned = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""Gradients [t, d] at vectors h [t, d] → how well the best row of the output layer explains each, and which it is."""


@dataclass(frozen=True)
class Step:
    """What one server saw of the recorded examples of one batch: rows [k], tokens of each, and of two adapters
    activations h [2, t, d] and gradients g [2, t, d], each of a length and a sign of its own."""

    rows: Ints
    lengths: Ints
    h: Tensor
    g: Tensor

    def mixed(self, ratio: float, most: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """g′ [t, d] and h′ [t, d] where the second gradient is so many times as long, and W₁ [d]."""
        one, other = self.g[0], ratio * self.g[1]
        whole = one + other
        weight = (one * whole).sum(0) / whole.square().sum(0).clamp(min=1e-30)
        h = weight * self.h[0] + (1 - weight) * self.h[1]
        return whole[:most], h[:most], weight

    def ratio(self, weight: Tensor) -> float:
        """The ratio at which known mixing weights W₁ [d] explain both gradients best."""
        one, other = self.g[0] * (1 - weight), self.g[1] * weight
        return float((one * other).sum() / other.square().sum())


def steps_of(seen: Transcript) -> list[Step]:
    """The steps of the first epoch, in which one server saw all vectors of the gradients of two adapters; else none."""
    first = seen.rounds(Channel.GRADIENTS)[:1]
    there: dict[int, dict[tuple[Channel, int], Message]] = {}
    for m in seen.messages:
        if (m.split, m.moment) == ("train", None) and [m.round] == first and m.step >= 0:
            there.setdefault(m.step, {})[m.channel, m.part] = m
    sent = [m for step in there.values() for (c, _), m in step.items() if c == Channel.GRADIENTS]
    down = {part for step in there.values() for c, part in step if c == Channel.ACTIVATIONS}
    parts = 1 + max((m.part for m in sent), default=0)
    if len({m.recipient for m in sent}) != 1 or down != {0, 1} or parts < 4 or parts % 2:
        return []
    return [_step(own, parts // 2) for own in there.values() if (Channel.GRADIENTS, 0) in own]


def _step(own: dict[tuple[Channel, int], Message], m: int) -> Step:
    h = [own[Channel.ACTIVATIONS, i].values for i in (0, 1)]
    shape, g = h[0].shape, []
    for i in (0, 1):
        vectors = [own[Channel.GRADIENTS, i * m + j].values.ravel() for j in range(m)]
        v = torch.from_numpy(np.stack(vectors)).double()
        shortest = torch.linalg.eigh(v @ v.T).eigenvectors[:, 0]
        g.append((shortest @ v).reshape(shape).float())
    first = own[Channel.GRADIENTS, 0]
    assert first.lengths is not None
    both = torch.stack([torch.from_numpy(each.copy()) for each in h])
    return Step(first.rows, first.lengths, both, torch.stack(g))


def read(steps: list[Step], aligned: Aligned) -> tuple[Ints, Ints, Ints]:
    """Rows [n], tokens of each [n], and the label that each of these seems to have [T]."""
    longest = max(steps, key=lambda step: step.g.shape[1])
    _, _, weight = longest.mixed(_best_ratio(longest, aligned))
    labels = []
    for step in steps:
        g, h, _ = step.mixed(step.ratio(weight))
        h = weight * step.h[0] + (1 - weight) * step.h[1]
        found = [aligned(sign * g, h) for sign in (1, -1)]  # a combination has no sign
        labels.append(max(found, key=lambda one: float(one[0].mean()))[1].numpy())
    rows, lengths = (
        np.concatenate([getattr(s, name) for s in steps]) for name in ("rows", "lengths")
    )
    return rows, lengths, np.concatenate(labels)


def _best_ratio(step: Step, aligned: Aligned) -> float:
    """The ratio at which the output layer explains most."""

    def explained(ratio: float) -> float:
        g, h, _ = step.mixed(ratio, TRIED)
        return max(float(aligned(sign * g, h)[0].mean()) for sign in (1, -1))

    even = float(step.g[0].norm() / step.g[1].norm())
    wide = [sign * even * float(each.exp()) for sign in (1, -1) for each in WIDE]
    best = max(wide, key=explained)
    return max((best * float(each.exp()) for each in FINE), key=explained)
