"""The base class of attacks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

from numpy.random import Generator

from leakboard.bench.contracts import Channel, Guess, Knows, ThreatModel, Transcript
from leakboard.bench.methods.knowledge import Knowledge
from leakboard.bench.methods.method import Method


class Silent(Exception):
    """Raised by an attack that finds nothing to guess from; its message is the reason in the record."""


class Attack(Method, ABC):
    """A way to guess what a defense should hide.

    A subclass sets `name`, `source` and `threat`, declares its parameters as fields and writes `guess`.
    """

    threat: ClassVar[ThreatModel]
    folds: ClassVar[int] = 0
    """For an attack that knows labels: number of folds of the training examples. It runs once per fold, with the
    labels of the other folds, and guesses about the rows of that fold."""
    costly: ClassVar[bool] = False
    """True if it takes a large part of the time of a cell; `attacks: all` excludes it, so a suite must name it."""

    labels: ClassVar[Literal["classes", "next tokens"]] = "classes"
    """Labels that it guesses or uses: the classes of a task, or the tokens of a text, where a language model learns each
    token as the label of the previous one."""
    idle_in_clear: ClassVar[bool] = False
    """True if it guesses only what token ids reveal directly; it is skipped for a defense that sends the token ids."""

    @property
    def needs(self) -> frozenset[Knows]:
        """The part of `threat.knows` that it needs with these parameters; it is granted nothing else."""
        return self.threat.knows

    @property
    def shadowed(self) -> tuple[int, Attack] | None:
        """Number of shadow models that the attacker trains, and the attack that measures each of them.

        Such an attack declares `Knows.SHADOWS`. None for an attack without shadow models.
        """
        return None

    @abstractmethod
    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        """Guesses from the transcript and the granted knowledge; the first guess is the main result.

        Args:
            rng: source of all random draws.

        Raises:
            Silent: the transcript contains nothing that this attack could read; the message says why.
        """

    def readable(self, cut: int) -> frozenset[Channel]:
        """Channels of its threat model from which it can guess something at this cut."""
        return self.threat.reads
