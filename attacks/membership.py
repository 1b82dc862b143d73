"""membership: who was trained on? Those whose loss is small, or has fallen."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from leakboard.bench.attacking import MembershipAttack
from leakboard.bench.exchange import Trainee, confidences
from leakboard.bench.methods import Knowledge, Source


class Membership(MembershipAttack):
    """Ranks examples by the loss of the released model.

    An example that is hard for everybody has a large loss, trained on or not; the public model
    before fine-tuning tells how hard it is. A classifier has no head before fine-tuning, so that
    the loss alone ranks there.
    """

    name: ClassVar[str] = "membership"
    source: ClassVar[Source] = Source(
        "Privacy Risk in Machine Learning: Analyzing the Connection to Overfitting (Yeom et al. 2018)",
        "section 3.3; calibrated as by Watson et al. 2022",
        "https://arxiv.org/abs/1709.01604",
    )
    version: ClassVar[int] = 2

    score: Literal["calibrated", "loss", "confidence"] = "calibrated"
    """`loss`: of the released model. `calibrated`: less that of the public one. `confidence`: how sure
    the released model is, as a number that is about normal over models."""

    def scores(self, released: Trainee, knowledge: Knowledge) -> NDArray[np.float64]:
        candidates = knowledge.candidates
        if self.score == "confidence":
            return self.of_each(confidences, released, candidates)
        values = -self.losses(released, candidates)
        if self.score == "calibrated" and not knowledge.classes:
            assert knowledge.network is not None
            values += self.losses(knowledge.network().eval(), candidates)
        return values
