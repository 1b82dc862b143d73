"""wbc: membership inference from short windows of tokens, compared with the public model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor

from leakboard.bench.attacking import MembershipAttack
from leakboard.bench.exchange import Trainee
from leakboard.bench.methods import Knowledge, Silent, Source


class WindowComparison(MembershipAttack):
    """Share of sliding windows in which the public model's summed loss exceeds that of the released model.

    Memorised passages are short. The mean over a text dilutes them, and one extreme token dominates it; each window
    has one vote. The share is averaged over window sizes that form a geometric series.
    """

    name: ClassVar[str] = "wbc"
    source: ClassVar[Source] = Source(
        "Window-based Membership Inference Attacks Against Fine-tuned Large Language Models (2026)",
        "window-based comparison with a reference model",
        "https://arxiv.org/abs/2601.02751",
    )

    least: int = Field(2, ge=1)
    """Tokens of the smallest window."""
    most: int = Field(40, ge=1)
    """Tokens of the largest window. A text with fewer tokens is one window."""
    sizes: int = Field(10, ge=1)
    """Number of window sizes, from the smallest to the largest in equal ratios."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.least > self.most:
            raise ValueError(f"least: {self.least} is more than most: {self.most}")
        return self

    def scores(self, released: Trainee, knowledge: Knowledge) -> NDArray[np.float64]:
        if knowledge.classes:
            raise Silent("it reads the losses of all tokens, which a classifier has none of")
        assert knowledge.network is not None
        public = knowledge.network().eval()
        before, after = (self.token_losses(each, knowledge) for each in (public, released))
        gains = [old.losses - new.losses for old, new in zip(before, after, strict=True)]
        return self.shares(gains)

    def shares(self, gains: Sequence[Tensor]) -> NDArray[np.float64]:
        """[n] the `won_share` of each text, from the public minus the released loss [L] of its tokens."""
        sizes = np.geomspace(self.least, self.most, self.sizes).round().astype(int)
        return np.array([won_share(gain, np.unique(sizes).tolist()) for gain in gains])


def won_share(gain: Tensor, sizes: list[int]) -> float:
    """Mean over window sizes of the share of windows whose sum of `gain` [L] is above 0; 0 without tokens.

    Args:
        gain: public minus released loss of each token.
    """
    if not len(gain):
        return 0.0
    sums = torch.cat([gain.new_zeros(1, dtype=torch.float64), gain.double().cumsum(0)])
    shares = []
    for size in sizes:
        width = min(size, len(gain))
        shares.append(float((sums[width:] - sums[:-width] > 0).double().mean()))
    return float(np.mean(shares))
