"""What an attack is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import numpy as np

from leakboard.bench.contracts import Channel, Guess, Knows, ThreatModel, Transcript
from leakboard.bench.methods.knowledge import Knowledge
from leakboard.bench.methods.method import Method


class Silent(Exception):
    """Raised by an attack that finds nothing to guess from; its words are the reason on the record."""


class Attack(Method, ABC):
    """A way to guess what a defense should hide.

    A subclass sets `name`, `source` and `threat`, declares its parameters as fields and writes `guess`.
    """

    threat: ClassVar[ThreatModel]
    folds: ClassVar[int] = 0
    """Where it knows labels: it is asked once per fold of the training examples, told the labels of
    the others, and guesses about the rows of that fold."""
    costly: ClassVar[bool] = False
    """True where it takes a large part of the time of a cell: a suite then has to name it, since
    `attacks: all` leaves it out."""

    labels: ClassVar[Literal["classes", "next tokens"]] = "classes"
    """What the labels are that it guesses, or guesses by: those of a task, or the text itself, of which a
    language model learns each token as the label of the one before."""
    idle_in_clear: ClassVar[bool] = False
    """True where it works for what a message with the token ids says by itself: it is then not tried on
    a defense that sends these as they are."""

    @property
    def needs(self) -> frozenset[Knows]:
        """Those of `threat.knows` that it needs with these parameters; nothing else is granted."""
        return self.threat.knows

    @property
    def shadowed(self) -> tuple[int, Attack] | None:
        """How many models like the target the attacker trains itself, and the attack by which it
        measures each; an attack that does so knows `Knows.SHADOWS`. None for one that does not."""
        return None

    @abstractmethod
    def guess(
        self, seen: Transcript, knowledge: Knowledge, rng: np.random.Generator
    ) -> list[Guess]:
        """Guesses from the transcript alone; the first guess is the headline one.

        Raises:
            Silent: the transcript holds nothing that this attack could read, and why.
        """

    def readable(self, cut: int) -> frozenset[Channel]:
        """Those channels of its threat model that tell it something at this cut."""
        return self.threat.reads
