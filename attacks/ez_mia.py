"""ez-mia: who was trained on? Texts of which words rose that the model still gets wrong, and hardly any fell."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from leakboard.bench.attacking import MembershipAttack
from leakboard.bench.backbones import LanguageModel, Tokens
from leakboard.bench.exchange import Trainee
from leakboard.bench.methods import Knowledge, Silent, Source


class ErrorZone(MembershipAttack):
    """How much likelier training made the tokens that the released model does not predict, to how much less.

    Tokens that are predicted are likely to everybody. Where the model errs, one that it has seen in
    this place has risen all the same, against the public model; one that it has not rises or falls.
    """

    name: ClassVar[str] = "ez-mia"
    source: ClassVar[Source] = Source(
        "Powerful Training-Free Membership Inference Against Autoregressive Language Models "
        "(Ilić et al. 2026)",
        "the error zone score",
        "https://arxiv.org/abs/2601.12104",
    )

    smoothing: float = Field(1.0, gt=0)
    """Nats that are added to what rose and to what fell: the paper divides the one by the other, so that a
    text with one error, or none that fell, has any score at all."""

    def scores(self, released: Trainee, knowledge: Knowledge) -> NDArray[np.float64]:
        if knowledge.classes:
            raise Silent("it reads the probabilities of all tokens, which a classifier has none of")
        assert knowledge.network is not None
        public = knowledge.network().eval()

        def measured(network: Trainee, tokens: Tokens, labels: Tensor) -> Tensor:
            assert isinstance(network, LanguageModel)
            assert isinstance(public, LanguageModel)
            after, right, mask = network.losses(tokens)
            shift = (public.losses(tokens)[0] - after) * (mask & ~right)
            risen, fallen = shift.clamp(min=0).sum(1), (-shift).clamp(min=0).sum(1)
            return ((risen + self.smoothing) / (fallen + self.smoothing)).log()

        return self.of_each(measured, released, knowledge.candidates)
