"""The formal guarantee of a defense."""

from __future__ import annotations

from math import inf
from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator

Unit = Literal["example", "secret", "label", "vector"]
"""What two inputs differ in that a guarantee makes alike: a whole training example, what a detector finds
in one, its label, or one vector that is sent."""

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

    @property
    def epsilon_of_examples(self) -> float | None:
        """ε of (ε, δ)-differential privacy of whole training examples: what guesses about members test."""
        older = self.unit is None and "privacy of single training examples" in self.guarantee
        # What JFT claims was written down in the words of DP-SGD, and covers less.
        whole = older and not self.covers.startswith("what the detector finds")
        return self.parameters.get("epsilon") if self.unit == "example" or whole else None
