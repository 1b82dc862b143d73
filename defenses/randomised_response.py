"""Randomised response: the customer trains on labels that are flipped at random."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import torch
from numpy.random import Generator
from pydantic import Field
from torch import Tensor

from leakboard.bench.contracts import Channel, Claim, Goal, Objective
from leakboard.bench.exchange import Session, Tuned, api
from leakboard.bench.methods import Defense, Source, Stage
from leakboard.defenses.none import NoDefense


class RandomisedResponse(Defense):
    """Replace each label by each wrong class with probability 1/(e^ε + C − 1), once per run.

    Training on these labels is that of `none`.
    """

    name: ClassVar[str] = "randomised-response"
    display_name: ClassVar[str] = "Randomised response"
    formerly: ClassVar[tuple[str, ...]] = ("pslf",)
    source: ClassVar[Source] = Source(
        "Randomized Response (Warner 1965), of labels as in Deep Learning with Label Differential "
        "Privacy (Ghazi et al. 2021)",
        "LP-1ST without a prior",
        "https://arxiv.org/abs/2102.06062",
    )
    emits: ClassVar[frozenset[Channel]] = api.CHANNELS
    knob: ClassVar[str | None] = "epsilon"
    protects: ClassVar[frozenset[Goal]] = frozenset({Goal.LABEL})
    colour: ClassVar[str] = "#78e187"
    marker: ClassVar[str] = "v"
    stage: ClassVar[Stage | None] = "labels"

    epsilon: float = Field(2.0, gt=0)
    """ε of label differential privacy; smaller values flip more labels."""

    def claim(self) -> Claim | None:
        return Claim(
            guarantee="ε-label differential privacy",
            parameters={"epsilon": self.epsilon},
            covers="each training label, once for all rounds; inputs are not covered",
            unit="label",
        )

    def twins(self, objective: Objective) -> tuple[Defense, ...]:
        # With unchanged labels it is plain fine-tuning over the API.
        return (NoDefense(),)

    def changed_labels(self, session: Session) -> Tensor:
        labels = randomised(session.labels.numpy(), session.classes, self.epsilon, session.noise)
        return torch.from_numpy(labels)

    def fine_tune(self, session: Session) -> Tuned:
        return api.fine_tune(session, labels=self.changed_labels(session))


def randomised(labels: np.ndarray, classes: int, epsilon: float, rng: Generator) -> np.ndarray:
    """[n] labels after randomised response over `classes`."""
    kept = 1 / (1 + (classes - 1) * math.exp(-epsilon))
    # A shift of 1 … C − 1 reaches each wrong class with equal chance.
    shift = rng.integers(1, classes, size=len(labels))
    lies = rng.random(len(labels)) >= kept
    return np.where(lies, (labels + shift) % classes, labels)
