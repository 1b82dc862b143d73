"""rmia: membership inference by comparison with public texts (RMIA, offline)."""

from __future__ import annotations

from statistics import fmean
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import expit

from leakboard.attacks.membership import Membership
from leakboard.bench.attacking import MembershipAttack
from leakboard.bench.contracts import Channel, Goal, Knows, ThreatModel
from leakboard.bench.exchange import Trainee
from leakboard.bench.methods import Attack, Auxiliary, Knowledge, Shadows, Source

TRIED = tuple(round(0.1 * i, 1) for i in range(11))
"""Candidates for a, from 0 to 1 as in the paper."""


class Rmia(MembershipAttack):
    """RMIA: the share of public texts z that a candidate x beats by a likelihood ratio, offline.

    LR(x, z) = (p(x|θ)/p(x)) / (p(z|θ)/p(z)), with p(x) = ((1 + a) p_out(x) + (1 − a))/2. p_out is given by the
    public model, which was surely not trained on x. The probability of a text is the geometric mean over its
    tokens, since the product is negligible compared to 1 − a. A classifier has no head before training, so under
    the public model all classes are equally likely.
    """

    name: ClassVar[str] = "rmia"
    source: ClassVar[Source] = Source(
        "Low-Cost High-Power Membership Inference Attacks (Zarifzadeh et al. 2024)",
        "section 3, offline",
        "https://arxiv.org/abs/2312.03262",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        {Goal.MEMBERSHIP},
        {Channel.MODEL},
        {Knows.BASE_WEIGHTS, Knows.MECHANISM, Knows.AUXILIARY_TEXT, Knows.SHADOWS},
    )
    younger: ClassVar[frozenset[str]] = frozenset({"models"})

    gamma: float = Field(1.0, gt=0)
    """γ, the factor by which a public text has to be beaten; 1 in the released code."""
    a: Annotated[float, Field(ge=0, le=1)] | Literal["tuned"] = 0.3
    """Relation of p(x) to p_out(x): a model trained on x is assumed to give it a·p_out(x) + 1 − a. "tuned" selects the
    value of `TRIED` that ranks members of shadow models best, as the paper does with its reference models; a
    number avoids their training."""
    population: int = Field(250, ge=1)
    """Maximum number of public texts z; it sets the resolution of the share, which need not be fine."""
    models: int = Field(2, ge=1)
    """Number of shadow models if `a` is tuned; each is a cell with its own fine-tuning."""

    @property
    def needs(self) -> frozenset[Knows]:
        return super().needs - (frozenset() if self.shadowed else {Knows.SHADOWS})

    @property
    def shadowed(self) -> tuple[int, Attack] | None:
        if self.a != "tuned":
            return None
        return self.models, Membership(score="loss", candidates=self.candidates)

    def scores(self, released: Trainee, knowledge: Knowledge) -> NDArray[np.float64]:
        assert knowledge.auxiliary is not None
        assert knowledge.candidates is not None
        out = self._out(knowledge, knowledge.candidates)
        a = tuned(out, knowledge.shadows) if self.a == "tuned" else self.a
        x = gains(-self.losses(released, knowledge.candidates), out, a)
        public = knowledge.auxiliary.take(self.population)
        z = gains(-self.losses(released, public), self._out(knowledge, public), a)
        return self.shares(x, z)

    def shares(self, x: NDArray[np.float64], z: NDArray[np.float64]) -> NDArray[np.float64]:
        """[n] the share of public texts that each candidate beats, from the `gains` of both."""
        beaten = np.searchsorted(np.sort(z), x - np.log(self.gamma), side="right")
        # The share is a step function of the gain, which ranks candidates without ties.
        share: NDArray[np.float64] = (beaten + expit(x)) / (len(z) + 1)
        return share

    def _out(self, knowledge: Knowledge, population: Auxiliary) -> NDArray[np.float64]:
        """[n] p_out(x), by the public model."""
        assert knowledge.network is not None
        if knowledge.classes:
            # Labels [n, C] that apply or not are two classes each; of a number only the error is known, so p is relative.
            is_class = population.labels.dtype.kind == "i"
            outcomes = knowledge.classes if is_class else population.labels.ndim
            return np.full(len(population.tokens), 1 / outcomes)
        found: NDArray[np.float64] = np.exp(-self.losses(knowledge.network().eval(), population))
        return found


def gains(after: NDArray[np.float64], out: NDArray[np.float64], a: float) -> NDArray[np.float64]:
    """[n] ln of p(x|θ)/p(x), from ln p(x|θ) and p_out(x)."""
    found: NDArray[np.float64] = after - np.log((1 + a) / 2 * out + (1 - a) / 2)
    return found


def tuned(out: NDArray[np.float64], shadows: Shadows | None) -> float:
    """The a of `TRIED` with the largest mean AUC of the gains over shadow models; the first in case of ties.

    Public texts need not be compared, since they are the same for all candidates of a model.
    """
    from sklearn.metrics import roc_auc_score  # here, since it takes a second to load

    assert shadows is not None

    def auc(a: float) -> float:
        every = zip(shadows.scores, shadows.members, strict=True)
        return fmean(roc_auc_score(inside, gains(after, out, a)) for after, inside in every)

    return max(TRIED, key=auc)
