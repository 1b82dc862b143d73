"""Distance correlation: activations are trained to be independent of the labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import one_hot

from leakboard.bench.backbones import score_loss
from leakboard.bench.contracts import WITH_HEAD, Channel, Goal, Objective
from leakboard.bench.exchange import Session, Tuned, api
from leakboard.bench.methods import Conditions, Defense, Source, Stage
from leakboard.defenses.none import NoDefense

TINY = 1e-12
"""Lower bound of a squared distance covariance, which keeps its logarithm finite."""


class DistanceCorrelation(Defense):
    """Add weight × log dCor(h, y) to the customer's loss; gradients are sent in the clear."""

    name: ClassVar[str] = "dc"
    display_name: ClassVar[str] = "DC"
    source: ClassVar[Source] = Source(
        "Label Leakage and Protection from Forward Embedding in Vertical Federated Learning "
        "(Sun et al. 2022)",
        "distance correlation",
        "https://arxiv.org/abs/2203.01451",
    )
    emits: ClassVar[frozenset[Channel]] = api.CHANNELS
    objectives: ClassVar[frozenset[Objective]] = WITH_HEAD
    knob: ClassVar[str | None] = "weight"
    colour: ClassVar[str] = "#e69f00"
    marker: ClassVar[str] = "s"
    stage: ClassVar[Stage | None] = "training"
    measured_by: ClassVar[Mapping[Goal, tuple[str, ...]]] = {
        Goal.LABEL: ("spectral", "norm", "kmeans")
    }
    """The attack with which P³EFT measures it, section 4.2."""
    measured_on: ClassVar[frozenset[Channel]] = frozenset({Channel.ACTIVATIONS})
    measured_worst: ClassVar[bool] = True

    weight: float = Field(0.5, ge=0)
    """λ; larger values hide more."""
    scaling: Literal["dcor", "dcor2"] = "dcor"
    """Logarithm of dCor, as in its paper, or of dCor², as in P³EFT's baseline (twice as strong)."""

    @property
    def undefended(self) -> bool:
        return self.weight == 0

    def twins(self, objective: Objective) -> tuple[Defense, ...]:
        # Without the regulariser it is plain fine-tuning over the API, message by message.
        return () if self.undefended else (NoDefense(),)

    def skip(self, conditions: Conditions) -> str | None:
        if conditions.objective in WITH_HEAD:
            return None
        return (
            "dc compares distances between the labels of a batch; those of a language model are words of a "
            "vocabulary, all equally far apart, and nearly all different in a batch: there is nothing to unrelate"
        )

    def fine_tune(self, session: Session) -> Tuned:
        def objective(h: Tensor, scores: Tensor, labels: Tensor) -> Tensor:
            loss = score_loss(scores, labels)
            if self.weight == 0 or not session.has_classes(labels, 2):
                return loss
            targets = labels if labels.is_floating_point() else one_hot(labels, session.classes)
            log = log_dcor2(h, targets.reshape(len(h), -1).to(h.dtype))
            return loss + self.weight * (log if self.scaling == "dcor2" else log / 2)

        return api.fine_tune(session, objective)


def log_dcor2(x: Tensor, y: Tensor) -> Tensor:
    """log dCor²(x, y) = log dCov²(x, y) − ½ log dVar²(x) − ½ log dVar²(y), of rows [n, ·]."""
    a, b = _centred(x), _centred(y)
    between, own, other = ((u * v).mean().clamp(min=TINY) for u, v in ((a, b), (a, a), (b, b)))
    return between.log() - (own.log() + other.log()) / 2


def _centred(x: Tensor) -> Tensor:
    """[n, n] Euclidean distances, double-centred."""
    distances = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")
    rows = distances.mean(0, keepdim=True)
    return distances - rows - rows.T + distances.mean()
