"""The formal guarantee of a defense."""

from __future__ import annotations

from math import expm1, inf
from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator

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
