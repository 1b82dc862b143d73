"""What one attack found, or why it found nothing."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from leakboard.bench.contracts.cell import MethodSpec
from leakboard.bench.contracts.channels import Channel
from leakboard.bench.contracts.estimates import Estimate, Point
from leakboard.bench.contracts.parts import Part
from leakboard.bench.contracts.threat import Goal

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
    """The success of the same attack on activations of the untrained model, which no defense can change.
    Of personal data that a model prints: what the public model prints. None where neither is read, in older
    records, and where an attack looks at changes alone."""
    step: int | None = None
    """Where it was read at one moment of training: at which."""
    ceiling: float = 1.0
    """The largest success there is: 1, or 19.93 bits of exposure."""
    bound: float | None = None
    """The largest `success` that the guarantee of the mechanism leaves to who knows as much, where the
    attack tells one; None in older records, too."""
    epsilon: float | None = None
    """What a guess about membership proves: the model is not ε-private for a smaller ε (95 %)."""
    epsilon_ceiling: float | None = None
    """The largest `epsilon` that guesses about so many examples could have proven, had all been right. None
    in older records, too; `leakboard.bench.scoring.provable` knows it there."""
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
        """Empirical privacy, 1 − success / ceiling. It belongs to one attack: another one may recover more."""
        s, most = self.success, self.ceiling
        if s is None:
            return None
        value, low, high, chance = (1 - x / most for x in (s.value, s.high, s.low, s.chance))
        return Estimate(value=value, low=low, high=high, n=s.n, chance=chance)

    @property
    def level(self) -> float | None:
        """Chance, or the floor where that is higher."""
        if self.success is None:
            return None
        return max(self.success.chance, self.floor.value if self.floor else 0.0)

    @property
    def above(self) -> float | None:
        """(success − level) / (ceiling − level): the advantage over the level, what training leaked."""
        s, level, most = self.success, self.level, self.ceiling
        return (
            None
            if s is None or level is None or level >= most
            else (s.value - level) / (most - level)
        )

    @property
    def advantage(self) -> float | None:
        """(success − chance) / (ceiling − chance): 0 at chance, 1 where everything is found, below 0 for
        worse than guessing."""
        s, most = self.success, self.ceiling
        return None if s is None or s.chance >= most else (s.value - s.chance) / (most - s.chance)


def name_of(leak: Leak) -> str:
    """Attack, goal and view, for messages."""
    parts = (leak.attack.name, leak.goal, leak.attribute, leak.channel, leak.view, leak.metric)
    return " ".join(str(part) for part in parts if part)
