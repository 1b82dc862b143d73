"""ez-mia: membership inference from the tokens that the released model mispredicts."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from leakboard.bench.attacking import MembershipAttack, TokenLosses
from leakboard.bench.exchange import Trainee
from leakboard.bench.methods import Knowledge, Silent, Source


class ErrorZone(MembershipAttack):
    """Ratio of probability gains to losses, over the tokens that the released model mispredicts.

    Correctly predicted tokens are likely for members and others. At errors, tokens of members are still more
    likely than under the public model; those of other texts rise or fall.
    """

    name: ClassVar[str] = "ez-mia"
    source: ClassVar[Source] = Source(
        "Powerful Training-Free Membership Inference Against Autoregressive Language Models "
        "(Ilić et al. 2026)",
        "the error zone score",
        "https://arxiv.org/abs/2601.12104",
    )

    smoothing: float = Field(1.0, gt=0)
    """Nats added to gains and to losses before division, so that texts with one error, or without losses, have a
    finite score. The paper adds nothing."""

    def scores(self, released: Trainee, knowledge: Knowledge) -> NDArray[np.float64]:
        if knowledge.classes:
            raise Silent("it reads the probabilities of all tokens, which a classifier has none of")
        assert knowledge.network is not None
        public = knowledge.network().eval()
        before, after = (self.token_losses(each, knowledge) for each in (public, released))

        def ratio(old: TokenLosses, new: TokenLosses) -> float:
            shift = (old.losses - new.losses)[~new.right]
            return float(self.log_ratio(shift[None])[0])

        return np.array([ratio(old, new) for old, new in zip(before, after, strict=True)])

    def log_ratio(self, shift: Tensor) -> Tensor:
        """[B] the score of each text.

        Args:
            shift: [B, L] by how much training raised ln p of each token; 0 where the token is predicted correctly.
        """
        risen, fallen = shift.clamp(min=0).sum(1), (-shift).clamp(min=0).sum(1)
        return ((risen + self.smoothing) / (fallen + self.smoothing)).log()
