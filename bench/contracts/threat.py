"""Threat models and guarantees: what an adversary sees, knows and guesses, and what a defense claims."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import expm1, inf
from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator

Party = Literal["customer", "vendor"]


class Channel(StrEnum):
    """Channels on which an adversary can see messages that cross the trust boundary."""

    TOKENS = "tokens"
    """Token ids of the inputs, one row of ids per example."""
    REPRESENTATIONS = "representations"
    """Vectors at the cut, one per token, which split learning sends instead of the text."""
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
    """∂loss/∂θ that the vendor returns, one vector per call; it can be computed from the call."""
    RECOMPUTED = "recomputed-activations"
    """h(x, θ_t) of every text sent to a server, which the server computes from the tokens or representations
    that it has, and θ_t."""
    LABELS = "labels"
    """Classes of training examples in the clear, one integer per example, if the vendor trains."""
    EMULATOR = "emulator"
    """Weights of the vendor's model, or of a substitute for a part of it, that the vendor sends to the customer, and
    the tuned weights that the customer returns; one vector each way."""
    MODEL = "model"
    """Trained parameters of the released model, one vector after each epoch; the last one counts."""


def known_from(sent: frozenset[Channel]) -> frozenset[Channel]:
    """Channels that a recipient has: those that it was sent, and those that it can compute from them."""
    has_inputs = not sent.isdisjoint({Channel.TOKENS, Channel.REPRESENTATIONS})
    return sent | {Channel.RECOMPUTED} if has_inputs and Channel.ACTIVATIONS in sent else sent


class Goal(StrEnum):
    """Secrets that an attack guesses."""

    INVERSION = "inversion"
    REIDENTIFICATION = "reidentification"
    """Which of N candidate texts was sent."""
    ATTRIBUTE = "attribute"
    LABEL = "label"
    MEMORISATION = "memorisation"
    MEMBERSHIP = "membership"
    MODEL = "model"
    """Predictions that the customer can make without the vendor, from the weights that it was given. The attacker is
    the customer, and the secret is the vendor's."""


class Knows(StrEnum):
    """Knowledge that an attack needs in addition to the transcript."""

    BASE_WEIGHTS = "base weights"
    MECHANISM = "mechanism"
    AUXILIARY_TEXT = "auxiliary text"
    LABELLED_SHARE = "labelled share"
    LABELS = "labels of other folds"
    COLLUSION = "collusion"
    SHADOWS = "shadow models"
    """Models that the attacker trains like the target, on examples that it chooses."""
    HELD = "what the customer holds"
    """The customer's own predictions, from the weights that it was given and tuned, without the vendor."""
    PREFIXES = "beginnings of training texts"
    """Beginnings of training texts, up to the personal data that are the secret."""
    CANDIDATES = "candidate texts"
    """Texts of which some were sent: recorded texts of the customer among public ones, in an order without meaning."""
    QUERIES = "queries"
    """Messages that the customer's side would send for texts that the attacker chooses, without its weights."""


@dataclass(frozen=True, init=False)
class ThreatModel:
    """The goals of an attack, the channels that it reads, and the knowledge that it needs; any sets or sequences."""

    goals: frozenset[Goal]
    reads: frozenset[Channel]
    """One of these channels is enough; an attack without any applies everywhere."""
    knows: frozenset[Knows]

    def __init__(
        self, goals: Iterable[Goal], reads: Iterable[Channel], knows: Iterable[Knows] = ()
    ) -> None:
        for name, values in (("goals", goals), ("reads", reads), ("knows", knows)):
            object.__setattr__(self, name, frozenset(values))


Unit = Literal["example", "author", "secret", "label", "vector"]
"""The difference between two inputs that a guarantee makes indistinguishable: a whole training example, all examples of
one author, the secrets that a detector finds in an example, its label, or one vector that is sent."""

MOST_EPSILON = 700.0
"""Largest exponent of e that is a finite float."""
MOST_PAIRS = 100
"""Largest number of pairs in a profile."""


class Claim(BaseModel):
    """The formal guarantee of a defense, as its authors state it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    guarantee: str
    """Name of the guarantee, such as 'dχ-privacy' or '(ε, δ)-differential privacy'."""
    parameters: dict[str, float]
    covers: str
    """Data that the guarantee covers, and data that it does not."""
    unit: Unit | None = None
    """None in records from before this field."""
    profile: tuple[tuple[float, float], ...] = ()
    """(ε, δ) pairs that the mechanism satisfies at the same time, the claimed pair first; an audit may test each.
    Empty without an accountant."""

    @field_validator("profile")
    @classmethod
    def _pairs(cls, profile: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
        if len(profile) > MOST_PAIRS or any(
            not (0 < epsilon < inf and 0 <= delta < 1) for epsilon, delta in profile
        ):
            raise ValueError(f"must be at most {MOST_PAIRS} pairs of 0 < ε and 0 ≤ δ < 1")
        return profile

    def of_authors(self, examples: int) -> Claim | None:
        """The guarantee for authors of at most so many examples that follows from one for single examples.

        For r examples it is (rε, δ (e^{rε} − 1)/(e^ε − 1)) (group privacy; Vadhan 2017, Lemma 2.2), for each
        pair of the profile. None if δ reaches 1, which guarantees nothing. A claim about another unit is returned
        unchanged.
        """
        if self.unit != "example":
            return self
        claimed = _group_privacy(self.parameters["epsilon"], self.parameters["delta"], examples)
        if claimed is None:
            return None
        every = [_group_privacy(epsilon, delta, examples) for epsilon, delta in self.profile]
        return self.model_copy(
            update={
                "guarantee": f"{self.guarantee}, of authors of at most {examples} examples",
                "parameters": self.parameters | {"epsilon": claimed[0], "delta": claimed[1]},
                "unit": "author",
                "profile": tuple(pair for pair in every if pair is not None),
            }
        )

    @property
    def epsilon_of_members(self) -> float | None:
        """ε for whole training examples or authors, which guesses about membership test; None for other units."""
        older = self.unit is None and "privacy of single training examples" in self.guarantee
        # Older records of JFT name the guarantee as those of DP-SGD do, but it covers less.
        whole = older and not self.covers.startswith("what the detector finds")
        whole = whole or self.unit in ("example", "author")
        return self.parameters.get("epsilon") if whole else None


def _group_privacy(epsilon: float, delta: float, size: int) -> tuple[float, float] | None:
    if size * epsilon > MOST_EPSILON:
        return None
    of_group = delta * expm1(size * epsilon) / expm1(epsilon)
    return (size * epsilon, of_group) if of_group < 1 else None
