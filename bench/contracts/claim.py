"""The formal guarantee of a defense."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Claim(BaseModel):
    """A formal guarantee, as its authors state it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    guarantee: str
    """Such as 'dχ-privacy' or '(ε, δ)-differential privacy'."""
    parameters: dict[str, float]
    covers: str
    """What the guarantee covers, and what it does not."""
