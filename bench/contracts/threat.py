"""Threat models and guarantees: what an adversary sees, knows and guesses, and what a defense claims."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import expm1, inf
from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator

Party = Literal["customer", "vendor"]


class Channel(StrEnum):
    """What an adversary can see crossing the trust boundary."""

    TOKENS = "tokens"
    """Token ids of the inputs, one row of ids per example."""
    REPRESENTATIONS = "representations"
    """Vectors at the cut, one per token: what split learning sends instead of the text."""
    ACTIVATIONS = "activations"
    """Pooled output h(x, θ) of the vendor's model, one vector per example."""
    GRADIENTS = "gradients"
    """∂loss/∂h, one vector per example."""
    LOGITS = "logits"
    """Class scores that the vendor returns."""
    LOGIT_GRADIENTS = "logit-gradients"
    """∂loss/∂logits, one vector per example."""
    CUT_GRADIENTS = "cut-gradients"
    """∂loss/∂representation that the vendor returns to a trainable bottom, one vector per token."""
    PARAMETERS = "parameters"
    """Adapter parameters θ sent to the vendor, one vector per call."""
    ADAPTER_GRADIENTS = "adapter-gradients"
    """∂loss/∂θ that the vendor returns, one vector per call; whoever sees the call can compute it."""
    RECOMPUTED = "recomputed-activations"
    """h(x, θ_t) of every text that a server was sent, which it computes itself from tokens and θ_t."""
    LABELS = "labels"
    """Classes of training examples in the clear, one whole number per example: where the vendor trains."""
    EMULATOR = "emulator"
    """Weights of its model, or of what stands for a part of it, that the vendor hands to the customer, and
    what the customer tuned of them and returns; one vector each way."""
    MODEL = "model"
    """The released model: what was trained of it, as one vector, after each epoch; the last counts."""


def known_from(sent: frozenset[Channel]) -> frozenset[Channel]:
    """What somebody has who is sent these channels: they, and what he computes from them himself."""
    serves = {Channel.TOKENS, Channel.ACTIVATIONS} <= sent
    return sent | {Channel.RECOMPUTED} if serves else sent


class Goal(StrEnum):
    """What an attack guesses."""

    INVERSION = "inversion"
    ATTRIBUTE = "attribute"
    LABEL = "label"
    MEMORISATION = "memorisation"
    MEMBERSHIP = "membership"
    MODEL = "model"
    """The vendor's: what the customer predicts without it, with what it was handed. The attacker is the
    customer, and what is protected is the vendor's."""


class Knows(StrEnum):
    """What an attack must be told besides the transcript."""

    BASE_WEIGHTS = "base weights"
    MECHANISM = "mechanism"
    AUXILIARY_TEXT = "auxiliary text"
    LABELLED_SHARE = "labelled share"
    LABELS = "labels of other folds"
    COLLUSION = "collusion"
    SHADOWS = "shadow models"
    """Models that the attacker trains like the target, on examples of its choice."""
    HELD = "what the customer holds"
    """Its own predictions, with what it was handed and tuned, after the vendor has gone."""
    PREFIXES = "beginnings of training texts"
    """What stands in training texts before personal data that are looked for."""
    QUERIES = "queries"
    """What the customer's side would send for texts of the attacker's choice, without its weights."""


@dataclass(frozen=True)
class ThreatModel:
    """What an attack guesses, what it reads and what it must know."""

    goals: frozenset[Goal]
    reads: frozenset[Channel]
    """Any one of these channels is enough; an empty set reads nothing and applies everywhere."""
    knows: frozenset[Knows] = frozenset()


Unit = Literal["example", "author", "secret", "label", "vector"]
"""What two inputs differ in that a guarantee makes alike: a whole training example, all examples of one author,
what a detector finds in one, its label, or one vector that is sent."""

MOST_EPSILON = 700.0
"""e to the power of more is no float."""
MOST_PAIRS = 100
"""Of a profile; what an audit tests, and others may send."""


class Claim(BaseModel):
    """A formal guarantee, as its authors state it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    guarantee: str
    """Such as 'dχ-privacy' or '(ε, δ)-differential privacy'."""
    parameters: dict[str, float]
    covers: str
    """What the guarantee covers, and what it does not."""
    unit: Unit | None = None
    """None in records that are older than this field."""
    profile: tuple[tuple[float, float], ...] = ()
    """(ε, δ) pairs that the mechanism keeps all at once, the claimed one first; what an audit may test
    besides that one. Empty where no accountant tells."""

    @field_validator("profile")
    @classmethod
    def _pairs(cls, profile: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
        if len(profile) > MOST_PAIRS or any(
            not (0 < epsilon < inf and 0 <= delta < 1) for epsilon, delta in profile
        ):
            raise ValueError(f"must be at most {MOST_PAIRS} pairs of 0 < ε and 0 ≤ δ < 1")
        return profile

    def of_authors(self, examples: int) -> Claim | None:
        """What (ε, δ)-differential privacy of single examples promises to authors of at most so many.

        That of r examples is (rε, δ (e^{rε} − 1)/(e^ε − 1)) (group privacy; Vadhan 2017, Lemma 2.2), for
        each pair of the profile. None where δ reaches 1, so that nothing is promised. A claim about anything
        but examples stays what it is.
        """
        if self.unit != "example":
            return self
        told = _of_group(self.parameters["epsilon"], self.parameters["delta"], examples)
        if told is None:
            return None
        every = [_of_group(epsilon, delta, examples) for epsilon, delta in self.profile]
        return self.model_copy(
            update={
                "guarantee": f"{self.guarantee}, of authors of at most {examples} examples",
                "parameters": self.parameters | {"epsilon": told[0], "delta": told[1]},
                "unit": "author",
                "profile": tuple(pair for pair in every if pair is not None),
            }
        )

    @property
    def epsilon_of_members(self) -> float | None:
        """ε of (ε, δ)-differential privacy of whole training examples, or authors: what guesses about members test."""
        older = self.unit is None and "privacy of single training examples" in self.guarantee
        # What JFT claims was written down in the words of DP-SGD, and covers less.
        whole = older and not self.covers.startswith("what the detector finds")
        whole = whole or self.unit in ("example", "author")
        return self.parameters.get("epsilon") if whole else None


def _of_group(epsilon: float, delta: float, size: int) -> tuple[float, float] | None:
    if size * epsilon > MOST_EPSILON:
        return None
    of_group = delta * expm1(size * epsilon) / expm1(epsilon)
    return (size * epsilon, of_group) if of_group < 1 else None
