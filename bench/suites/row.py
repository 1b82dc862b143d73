"""A row of a suite: a defense and its training settings."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, SerializeAsAny

from leakboard.bench.contracts import TrainSettings, TunedOn
from leakboard.bench.methods import Defense


class SuiteRow(BaseModel):
    """A defense with its own training settings.

    In a file they follow the method: `- dpsgd: {epsilon: 3}`, then `train: {tune: head, epochs: 100}`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    defense: SerializeAsAny[Defense]
    train: TrainSettings | None = None
    """Settings that override those of the suite."""
    trials: tuple[str, ...] = ()
    """Keys of the records of all trials from which `train` was chosen, those of the chosen one first."""
    tuned_on: TunedOn | None = None
    """Texts of these trials: `private` training examples, which a claim does not cover, or `public` texts of the task."""

    @property
    def own(self) -> dict[str, Any]:
        """Training settings that the row sets."""
        return self.train.model_dump(exclude_unset=True) if self.train else {}

    def over(self, settings: TrainSettings) -> TrainSettings:
        """Training settings with those of the row applied."""
        return settings.model_copy(update=self.own)

    @property
    def trained(self) -> str:
        """Training settings of the row, such as 'epochs=30 tune=head'; '' if it sets none."""
        return format_settings(self.own)

    def __str__(self) -> str:
        return " ".join(filter(None, [str(self.defense), self.trained]))


def format_settings(settings: dict[str, Any]) -> str:
    """Format training settings, such as 'epochs=30 tune=head'."""
    words = (f"{value:g}" if isinstance(value, float) else value for value in settings.values())
    return " ".join(f"{name}={word}" for name, word in zip(settings, words, strict=True))


def as_row(value: Any) -> Any:
    """Convert a defense to a row without settings."""
    return SuiteRow(defense=value) if isinstance(value, Defense) else value
