"""Reconstruction of P³EFT's split gradients of a language model by a server that receives all vectors.

P³EFT sends m vectors instead of each gradient g_i of an adapter; their span contains g_i. It mixes h′ = Σ Wᵢ ∘ hᵢ with
secret weights. The noise is much longer than the gradient, so the shortest combination of the m vectors is g_i up to
its length. Since g_i = Wᵢ ∘ g′ and Σ Wᵢ = 1, the g_i sum to g′ = ∂loss/∂h′. For two adapters, only the ratio of the two
lengths is unknown. At the right ratio, g′ points from a row of the public output layer to the mean that h′ predicts.
Tokens that are read with confidence then say what g′ must be, and a regression on the vectors gives g′ exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from leakboard.bench.contracts import Channel, Ints, Message, Transcript

TRIED = 64
"""Number of tokens of one step on which a ratio is scored."""
WIDE, FINE = torch.linspace(-1, 1, 81), torch.linspace(-0.025, 0.025, 11)
"""Grids of log-ratios, relative to the ratio at which both gradients have equal length."""

ROUNDS = 2
"""How often the tokens that are read correct the gradients from which they are read."""
SURE = 0.8
"""Score of a token from which it corrects the gradients."""

Aligned = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""Function of gradients [t, d] at vectors h [t, d]: score of the best row of the output layer, and its index."""
Expected = Callable[[Tensor, Tensor], Tensor]
"""Function of vectors h [t, d] and labels [t]: the gradients [t, d] that they imply, up to a common factor."""


@dataclass(frozen=True)
class Step:
    """One server's view of the recorded examples of one batch.

    Attributes:
        rows, lengths: [k] examples, and their numbers of tokens.
        h: [2, t, d] activations of two adapters.
        vectors: [2, m, t, d] vectors in place of the gradient of each.
        g: [2, t, d] the shortest combination of these vectors, which is the gradient up to length, sign and an error that
            falls with the number of values.
    """

    rows: Ints
    lengths: Ints
    h: Tensor
    vectors: Tensor
    g: Tensor

    def mixture(self, weight: Tensor) -> Tensor:
        """h′ [t, d] under mixing weights W₁ [d]."""
        return weight * self.h[0] + (1 - weight) * self.h[1]

    def fitted(self, gradient: Tensor, sure: Tensor) -> Tensor:
        """[2, t, d] the combinations of the vectors whose sum is closest to `gradient` [t, d] at the tokens `sure` [t]."""
        every = self.vectors.double()
        columns = every[:, :, sure].flatten(0, 1).flatten(1).T
        target = gradient[sure].double().reshape(-1, 1)
        scalars = torch.linalg.lstsq(columns, target).solution.reshape(every.shape[:2])
        return torch.einsum("im,imtd->itd", scalars, every)

    def scaled(self, ratio: float) -> Tensor:
        """[2, t, d] both gradients, the second scaled by `ratio`."""
        return torch.stack([self.g[0], ratio * self.g[1]])

    def mixed(self, ratio: float, most: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """g′ [t, d], h′ [t, d] and W₁ [d] if the second gradient is scaled by `ratio`."""
        pair = self.scaled(ratio)
        weight = weight_of(pair)
        return pair.sum(0)[:most], self.mixture(weight)[:most], weight

    def ratio(self, weight: Tensor) -> float:
        """Ratio at which mixing weights W₁ [d] explain both gradients best."""
        first, second = self.g[0] * (1 - weight), self.g[1] * weight
        return float((first * second).sum() / second.square().sum())


def weight_of(pair: Tensor) -> Tensor:
    """W₁ [d] that explains best how both gradients [2, t, d] share their sum g′."""
    total = pair.sum(0)
    return (pair[0] * total).sum(0) / total.square().sum(0).clamp(min=1e-30)


def steps_of(seen: Transcript) -> list[Step]:
    """Steps of the first epoch, if one server saw all gradient vectors of two adapters; else an empty list."""
    first = seen.rounds(Channel.GRADIENTS)[:1]
    by_step: dict[int, dict[tuple[Channel, int], Message]] = {}
    for m in seen.messages:
        if (m.split, m.moment) == ("train", None) and [m.round] == first and m.step >= 0:
            by_step.setdefault(m.step, {})[m.channel, m.part] = m
    sent = [m for step in by_step.values() for (c, _), m in step.items() if c == Channel.GRADIENTS]
    down = {part for step in by_step.values() for c, part in step if c == Channel.ACTIVATIONS}
    parts = 1 + max((m.part for m in sent), default=0)
    if len({m.recipient for m in sent}) != 1 or down != {0, 1} or parts < 4 or parts % 2:
        return []
    return [
        _step(messages, parts // 2)
        for messages in by_step.values()
        if (Channel.GRADIENTS, 0) in messages
    ]


def _step(messages: dict[tuple[Channel, int], Message], m: int) -> Step:
    h = [messages[Channel.ACTIVATIONS, i].values for i in (0, 1)]
    sent = [[messages[Channel.GRADIENTS, i * m + j].values for j in range(m)] for i in (0, 1)]
    vectors, g = torch.from_numpy(np.array(sent)), []
    for own in vectors.flatten(2).double():
        shortest = torch.linalg.eigh(own @ own.T).eigenvectors[:, 0]
        g.append((shortest @ own).reshape(h[0].shape).float())
    first = messages[Channel.GRADIENTS, 0]
    assert first.lengths is not None
    both = torch.stack([torch.from_numpy(each.copy()) for each in h])
    return Step(first.rows, first.lengths, both, vectors, torch.stack(g))


def read(steps: list[Step], aligned: Aligned, expected: Expected) -> tuple[Ints, Ints, Ints]:
    """Rows [n], numbers of tokens [n], and the most likely label of each token [T]."""
    longest = max(steps, key=lambda step: step.g.shape[1])
    _, _, weight = longest.mixed(_best_ratio(longest, aligned))
    pairs = [step.scaled(step.ratio(weight)) for step in steps]
    labels = _labels(steps, pairs, weight, aligned)
    for _ in range(ROUNDS):
        pairs = [
            step.fitted(expected(step.mixture(weight), found), sure)
            if (sure := score > SURE).any()
            else step.scaled(step.ratio(weight)).double()
            for step, (score, found) in zip(steps, labels, strict=True)
        ]
        weight = weight_of(torch.cat(pairs, 1)).float()
        labels = _labels(steps, pairs, weight, aligned)
    rows, lengths = (
        np.concatenate([getattr(s, name) for s in steps]) for name in ("rows", "lengths")
    )
    return rows, lengths, np.concatenate([found.numpy() for _, found in labels])


def _labels(
    steps: list[Step], pairs: list[Tensor], weight: Tensor, aligned: Aligned
) -> list[tuple[Tensor, Tensor]]:
    """Scores and labels [t] of each step, from its gradients [2, t, d], whose sign is unknown."""
    found = []
    for step, pair in zip(steps, pairs, strict=True):
        g, h = pair.sum(0).float(), step.mixture(weight)
        candidates = [aligned(sign * g, h) for sign in (1, -1)]
        found.append(max(candidates, key=lambda one: float(one[0].mean())))
    return found


def _best_ratio(step: Step, aligned: Aligned) -> float:
    """Ratio at which the output layer explains the gradients best."""

    def explained(ratio: float) -> float:
        g, h, _ = step.mixed(ratio, TRIED)
        return max(float(aligned(sign * g, h)[0].mean()) for sign in (1, -1))

    even = float(step.g[0].norm() / step.g[1].norm())
    wide = [sign * even * float(each.exp()) for sign in (1, -1) for each in WIDE]
    best = max(wide, key=explained)
    return max((best * float(each.exp()) for each in FINE), key=explained)
