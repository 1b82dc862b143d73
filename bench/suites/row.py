"""A row of a suite: a defense, and what was chosen of its training."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, SerializeAsAny

from leakboard.bench.contracts import TrainSettings
from leakboard.bench.methods import Defense


class SuiteRow(BaseModel):
    """A defense, and the settings of training that belong to it.

    In a file they stand below the method's name: `- dpsgd: {epsilon: 3}`, then
    `train: {tune: head, epochs: 100}`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    defense: SerializeAsAny[Defense]
    train: TrainSettings | None = None
    """What is set here counts; for the rest the suite's settings hold."""
    trials: tuple[str, ...] = ()
    """Keys of the records of all trials by which `train` was chosen, those of the chosen one first."""

    @property
    def own(self) -> dict[str, Any]:
        """What the row sets of its training."""
        return self.train.model_dump(exclude_unset=True) if self.train else {}

    def over(self, settings: TrainSettings) -> TrainSettings:
        """Some settings of training with the row's own in their places."""
        return settings.model_copy(update=self.own)

    @property
    def trained(self) -> str:
        """What it sets of its training in words, such as 'epochs=30 tune=head'; '' where nothing."""
        return format_settings(self.own)

    def __str__(self) -> str:
        return " ".join(filter(None, [str(self.defense), self.trained]))


def format_settings(settings: dict[str, Any]) -> str:
    """Settings of training, such as 'epochs=30 tune=head'."""
    words = (f"{value:g}" if isinstance(value, float) else value for value in settings.values())
    return " ".join(f"{name}={word}" for name, word in zip(settings, words, strict=True))


def as_row(value: Any) -> Any:
    """A defense without settings of its own as a row."""
    return SuiteRow(defense=value) if isinstance(value, Defense) else value
