"""membership: membership inference from the loss, or from its decrease by training."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leakboard.bench.attacking import MembershipAttack
from leakboard.bench.backbones import LanguageModel, Tokens
from leakboard.bench.exchange import Trainee, class_scores, confidences
from leakboard.bench.methods import Knowledge, Silent, Source

PREDICTED = ("top", "entropy", "modified entropy")
"""Scores that read the probabilities of all classes."""
LEAST = -100.0
"""Smallest logarithm of a probability; that of 0 is infinite."""


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

    score: Literal["calibrated", "loss", "confidence", "top", "entropy", "modified entropy"] = (
        "calibrated"
    )
    """`loss` of the released model; `calibrated`: minus the loss of the public model; `confidence`: the logit of the
    probability, which is about normally distributed over models. Of classifiers also `top`, the largest probability,
    and the `entropy` of the prediction, which need no label, and `modified entropy` (Song & Mittal 2021), which does."""

    def scores(self, released: Trainee, knowledge: Knowledge) -> NDArray[np.float64]:
        candidates = knowledge.candidates
        if self.score == "confidence":
            return self.measure_candidates(confidences, released, candidates)
        if self.score in PREDICTED:
            assert candidates is not None
            if not knowledge.classes or candidates.labels.dtype.kind != "i":
                raise Silent("it reads the probabilities of classes, of which this model has none")
            return self.measure_candidates(self._predicted, released, candidates)
        values = -self.losses(released, candidates)
        if self.score == "calibrated" and not knowledge.classes:
            assert knowledge.network is not None
            values += self.losses(knowledge.network().eval(), candidates)
        return values

    def _predicted(self, network: Trainee, tokens: Tokens, labels: Tensor) -> Tensor:
        assert not isinstance(network, LanguageModel)
        logs = class_scores(network, tokens).log_softmax(-1)
        return prediction_scores(self.score, logs, labels.to(logs.device))


def prediction_scores(score: str, logs: Tensor, labels: Tensor) -> Tensor:
    """[B] scores of predictions, larger for likely members.

    Args:
        score: one of `PREDICTED`.
        logs: [B, C] ln p of each class.
        labels: [B] true classes.
    """
    if score == "top":
        return logs.amax(1)
    p = logs.exp()
    if score == "entropy":
        return (p * logs.clamp(min=LEAST)).sum(1)
    # A wrong and certain prediction has a large modified entropy, a right and certain one a small one.
    own = torch.nn.functional.one_hot(labels, logs.shape[1]).bool()
    others = (p * torch.log1p(-p).clamp(min=LEAST)).masked_fill(own, 0).sum(1)
    return (1 - p[own]) * logs[own].clamp(min=LEAST) + others
