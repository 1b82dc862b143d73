"""What one attack found, or why it found nothing."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from bench.contracts.cell import MethodSpec
from bench.contracts.channels import Channel
from bench.contracts.estimates import Estimate, Point
from bench.contracts.parts import Part
from bench.contracts.threat import Goal

Status = Literal["ok", "skipped", "failed", "diverged", "out-of-memory"]


class Leak(Part):
    """What one attack found in one view of the transcript, or why it found nothing."""

    attack: MethodSpec
    status: Status
    reason: str = ""
    goal: Goal
    view: str = ""
    attribute: str | None = None
    channel: Channel | None = None
    metric: str = ""
    success: Estimate | None = None
    floor: Estimate | None = None
    """Of a label read from activations: the same attack on those of the untrained model, which no
    defense can change. None elsewhere, in older records, and where an attack looks at changes alone."""
    step: int | None = None
    """Where it was read at one moment of training: at which."""
    ceiling: float = 1.0
    """The largest `success` there is."""
    bound: float | None = None
    """The largest `success` that the guarantee of the mechanism leaves to who knows as much, where the
    attack tells one; None in older records, too."""
    epsilon: float | None = None
    """What a guess about membership proves: the model is not ε-private for a smaller ε (95 %)."""
    epsilon_ceiling: float | None = None
    """The largest `epsilon` that guesses about so many examples could have proven, had all been right. None
    in older records, too; `bench.scoring.provable` knows it there."""
    curve: list[Point] = []
    """All moments, where there are several; with the worst one only."""
    undefined: int = 0
    """Moments left out, since one class was missing there."""
    units: int = 0
    """Guesses scored: tokens for inversion, examples otherwise."""
    told: list[int] = []
    """For each value of the attribute the examples that the attacker was told to have it."""
    seconds: float = 0.0
    raw: dict[str, list[int]] = {}
    """Numbers per example from which `success` can be computed again."""

    @model_validator(mode="before")
    @classmethod
    def _as_written_before(cls, given: Any) -> Any:
        """Earlier versions wrote down whether a leak is a certificate; that is derived now."""
        if isinstance(given, dict) and "certificate" in given:
            return {name: value for name, value in given.items() if name != "certificate"}
        return given

    @property
    def ep(self) -> Estimate | None:
        """Empirical privacy, 1 − success / ceiling, with its interval."""
        s, most = self.success, self.ceiling
        if s is None:
            return None
        value, low, high, chance = (1 - x / most for x in (s.value, s.high, s.low, s.chance))
        return Estimate(value=value, low=low, high=high, n=s.n, chance=chance)

    @property
    def level(self) -> float | None:
        """What no defense can change: the success of guessing, or the floor where that is higher."""
        if self.success is None:
            return None
        return max(self.success.chance, self.floor.value if self.floor else 0.0)

    @property
    def above(self) -> float | None:
        """(success − level) / (ceiling − level): what training leaked."""
        s, level, most = self.success, self.level, self.ceiling
        return (
            None
            if s is None or level is None or level >= most
            else (s.value - level) / (most - level)
        )

    @property
    def advantage(self) -> float | None:
        """(success − chance) / (ceiling − chance)."""
        s, most = self.success, self.ceiling
        return None if s is None or s.chance >= most else (s.value - s.chance) / (most - s.chance)


def name_of(leak: Leak) -> str:
    """Attack, goal and view, for messages."""
    parts = (leak.attack.name, leak.goal, leak.attribute, leak.channel, leak.view, leak.metric)
    return " ".join(str(part) for part in parts if part)
