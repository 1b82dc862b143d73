"""membership: membership inference from the loss, or from its decrease by training."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from leakboard.bench.attacking import MembershipAttack
from leakboard.bench.exchange import Trainee, confidences
from leakboard.bench.methods import Knowledge, Source


class Membership(MembershipAttack):
    """Rank examples by the loss of the released model.

    Difficult examples have a large loss even if they are members; the loss of the public model measures their
    difficulty. A classifier has no head before fine-tuning, so examples are ranked by the loss alone.
    """

    name: ClassVar[str] = "membership"
    source: ClassVar[Source] = Source(
        "Privacy Risk in Machine Learning: Analyzing the Connection to Overfitting (Yeom et al. 2018)",
        "section 3.3; calibrated as by Watson et al. 2022",
        "https://arxiv.org/abs/1709.01604",
    )
    version: ClassVar[int] = 2

    score: Literal["calibrated", "loss", "confidence"] = "calibrated"
    """`loss` of the released model; `calibrated`: minus the loss of the public model; `confidence`: the logit of the
    probability, which is about normally distributed over models."""

    def scores(self, released: Trainee, knowledge: Knowledge) -> NDArray[np.float64]:
        candidates = knowledge.candidates
        if self.score == "confidence":
            return self.measure_candidates(confidences, released, candidates)
        values = -self.losses(released, candidates)
        if self.score == "calibrated" and not knowledge.classes:
            assert knowledge.network is not None
            values += self.losses(knowledge.network().eval(), candidates)
        return values
