"""lira: membership inference by a likelihood ratio over shadow models."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import Field, field_validator

from leakboard.attacks.membership import Membership
from leakboard.bench.contracts import Channel, Goal, Guess, Knows, ThreatModel, Transcript
from leakboard.bench.methods import Attack, Knowledge, Shadows, Source

MIN_FOR_VARIANCE = 64
"""Number of shadow models from which variances are estimated per candidate (section VI-C of the paper)."""


class Lira(Attack):
    """Likelihood ratio of a candidate's score under normal distributions fitted to shadow models with and without it.

    This is the strongest attacker of its kind: it trains shadow models with the target's defense, on the target's
    training data except for the candidates, of which each shadow model gets a random half. It scores candidates as
    the defense would have trained on them, for the target and the shadow models alike.
    """

    name: ClassVar[str] = "lira"
    source: ClassVar[Source] = Source(
        "Membership Inference Attacks From First Principles (Carlini et al. 2022)",
        "algorithm 1, online",
        "https://arxiv.org/abs/2112.03570",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        {Goal.MEMBERSHIP}, {Channel.MODEL}, {Knows.BASE_WEIGHTS, Knows.MECHANISM, Knows.SHADOWS}
    )
    version: ClassVar[int] = 2
    costly: ClassVar[bool] = True

    shadows: int = Field(16, ge=4)
    """Number of shadow models, even; each is a cell with its own fine-tuning."""

    @field_validator("shadows")
    @classmethod
    def _even(cls, number: int) -> int:
        if number % 2:
            raise ValueError("must be even, so that each candidate is in half of the models")
        return number

    @property
    def shadowed(self) -> tuple[int, Attack]:
        return self.shadows, Membership(score="confidence")

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        if knowledge.shadows is None:
            return []
        _, measure = self.shadowed
        return [
            replace(guess, values=ratios(np.asarray(guess.values), knowledge.shadows))
            for guess in measure.guess(seen, knowledge, rng)
        ]


def ratios(scores: NDArray[np.float64], shadows: Shadows) -> NDArray[np.float64]:
    """[n] ln of the likelihood ratio, in against out, of the scores [n] of the target."""
    from scipy.stats import norm  # here, since it takes a second to load

    logs = []
    for inside in (shadows.members, ~shadows.members):
        count = inside.sum(0)
        mean = np.where(inside, shadows.scores, 0).sum(0) / count
        square = np.where(inside, (shadows.scores - mean) ** 2, 0).sum(0)
        own = square / (count - 1)
        variance = own if len(inside) >= MIN_FOR_VARIANCE else square.sum() / (count - 1).sum()
        # Records keep six decimals of scores, so smaller spreads are rounding.
        logs.append(norm.logpdf(scores, mean, np.sqrt(np.maximum(variance, 1e-12))))
    ratio: NDArray[np.float64] = logs[0] - logs[1]
    return ratio
