"""rmia: who was trained on? Texts that gained more from training than most public ones did."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import expit

from bench.attacking import MembershipAttack
from bench.contracts import Channel, Goal, Knows, ThreatModel
from bench.exchange import Trainee, losses
from bench.methods import Auxiliary, Knowledge, Source


class Rmia(MembershipAttack):
    """RMIA: the share of public texts z that a candidate x beats by a likelihood ratio, offline.

    LR(x, z) = (p(x|θ)/p(x)) / (p(z|θ)/p(z)), with p(x) = ((1 + a) p_out(x) + (1 − a))/2. The one model that
    was surely not trained on x is the public one, which gives p_out. As probability of a text stands
    the geometric mean over its tokens, since that of the whole is 0 beside 1 − a. A classifier has no
    head before training, and all its classes are equally likely to the public model.
    """

    name: ClassVar[str] = "rmia"
    source: ClassVar[Source] = Source(
        "Low-Cost High-Power Membership Inference Attacks (Zarifzadeh et al. 2024)",
        "section 3, offline",
        "https://arxiv.org/abs/2312.03262",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        frozenset({Goal.MEMBERSHIP}),
        frozenset({Channel.MODEL}),
        frozenset({Knows.BASE_WEIGHTS, Knows.MECHANISM, Knows.AUXILIARY_TEXT}),
    )

    gamma: float = Field(1.0, gt=0)
    """γ: by what factor a public text has to be beaten; 1 in the released code."""
    a: float = Field(0.3, ge=0, le=1)
    """How p(x) rises from p_out(x): a model trained on x is taken to give it a·p_out(x) + 1 − a."""
    population: int = Field(250, ge=1)
    """At most so many public texts z, the first ones: the fineness of the share, of which the ranking asks
    little."""

    def scores(self, released: Trainee, knowledge: Knowledge) -> NDArray[np.float64]:
        assert knowledge.auxiliary is not None
        assert knowledge.candidates is not None
        x = self._gains(released, knowledge, knowledge.candidates)
        z = self._gains(released, knowledge, _first(knowledge.auxiliary, self.population))
        beaten = np.searchsorted(np.sort(z), x - np.log(self.gamma), side="right")
        # The share is a step function of the gain; where many share 0 or 1, the gain itself ranks.
        share: NDArray[np.float64] = (beaten + expit(x)) / (len(z) + 1)
        return share

    def _gains(
        self, released: Trainee, knowledge: Knowledge, told: Auxiliary
    ) -> NDArray[np.float64]:
        """[n] ln of p(x|θ)/p(x)."""
        assert knowledge.network is not None
        after = -self.of_each(losses, released, told)
        if knowledge.classes:
            out = np.full(len(after), 1 / knowledge.classes)
        else:
            out = np.exp(-self.of_each(losses, knowledge.network().eval(), told))
        gains: NDArray[np.float64] = after - np.log((1 + self.a) / 2 * out + (1 - self.a) / 2)
        return gains


def _first(told: Auxiliary, n: int) -> Auxiliary:
    """The first n public texts."""
    rows = torch.arange(min(n, len(told.tokens)))
    masked = None if told.masked is None else told.masked.take(rows)
    return Auxiliary(told.tokens.take(rows), told.labels[:n], masked=masked)
