"""What a defense is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from leakboard.bench.contracts import Channel, Claim, Goal, Objective, TrainSettings
from leakboard.bench.exchange import Tuned
from leakboard.bench.methods.method import Method

if TYPE_CHECKING:
    from leakboard.bench.backbones import Backbone, Ragged, Tokens
    from leakboard.bench.exchange import Session
    from leakboard.bench.tasks import Split


HEADS: Sequence[Mapping[str, Any]] = [
    {"tune": "head", "learning_rate": rate, "epochs": epochs, "batch_size": 64}
    for epochs in (10, 30)
    for rate in (1e-2, 3e-3, 3e-2)
]
"""What is tried where a head alone is trained: its passes cost next to nothing."""


class Defense(Method, ABC):
    """A way to fine-tune that protects something of the customer's.

    A subclass sets `name`, `source` and `emits`, declares its parameters as fields and writes `fine_tune`.
    """

    emits: ClassVar[frozenset[Channel]]
    """Channels that cross the trust boundary; sending on another one is an error."""
    knob: ClassVar[str | None] = None
    """The parameter that trades utility for privacy; plots label points with it."""
    switch: ClassVar[str | None] = None
    """The parameter by which alone the protection is off, where it is None."""
    colour: ClassVar[str] = ""
    marker: ClassVar[str] = "o"
    protects: ClassVar[frozenset[Goal]] = frozenset()
    """The goals of attackers against which it is made, besides those of `measured_by`."""
    measured_by: ClassVar[Mapping[Goal, tuple[str, ...]]] = MappingProxyType({})
    """The attacks by which its authors measure it; of several, the one that applies at the cut."""
    measured_on: ClassVar[frozenset[Channel]] = frozenset()
    """The channels on which those attacks count; empty for whatever they read."""

    least_blocks: ClassVar[int] = 1
    """Of a model, for what it cuts out of it."""
    hides_tokens: ClassVar[bool] = False
    """Whether the token ids that it sends, if any, are others than those of the texts."""
    objectives: ClassVar[frozenset[Objective]] = frozenset({"classification"})
    """What it can train a model for."""
    circumstances: ClassVar[frozenset[str]] = frozenset()
    """Parameters that say what befalls the defense, not what its user chooses: boards take the worst."""

    @abstractmethod
    def fine_tune(self, session: Session) -> Tuned:
        """Trains on `session.train`; all that the vendor learns goes through `session.wire`."""

    @property
    def sends(self) -> frozenset[Channel]:
        """The channels on which it sends with these parameters, where they are others than `emits`."""
        return self.emits

    @property
    def undefended(self) -> bool:
        """True where these parameters switch the protection off: attacks are certified on such cells."""
        return self.switch is not None and getattr(self, self.switch) is None

    def twins(self, objective: Objective) -> tuple[Defense, ...]:
        """This defense with its protection off, and what else sends the same as that.

        That an attack fails here says something only where it works on one of them. A suite without any
        gets the first. Where the protection is off already, or nothing switches it off, there is none.
        """
        if self.switch is None or self.undefended:
            return ()
        return (self.model_copy(update={self.switch: None}),)

    def tried(self, settings: TrainSettings, n: int, classes: int) -> Sequence[Mapping[str, Any]]:
        """Settings of training that `leakboard tune` tries in place of some, what works most often first.

        They are compared by utility on held-out training examples, so nothing belongs here that trades
        utility for privacy; that is what parameters are for.

        Args:
            n: training examples.
            classes: 0 for language modelling.

        Returns:
            For each trial what it changes; nothing where there is nothing to train.
        """
        if settings.tune == "head":
            return HEADS
        rate, epochs = settings.learning_rate, settings.epochs
        steps = ((3.0, 1), (0.3, 1), (1.0, 2), (3.0, 2), (0.3, 2), (0.1, 1))
        return [{"learning_rate": rate * up, "epochs": epochs * long} for up, long in steps]

    def claim(self) -> Claim | None:
        """The formal guarantee at these parameters, or None."""
        return None

    def promises(self, n: int, settings: TrainSettings, whole: bool = True) -> Claim | None:
        """The guarantee that training on so many examples will come with, where that is known before.

        Args:
            whole: with its profile, which may take an accountant seconds.
        """
        return self.claim()

    def as_trained(self, base: Backbone, split: Split) -> Split | None:
        """Examples as training would see them, as far as who knows the mechanism can tell.

        An attacker asks it of texts that it holds. What is drawn in a run, such as what a detector is
        made to miss, and what a person corrects by hand have no part in it.

        Returns:
            None where training sees examples as they are.
        """
        return None

    def simulate(
        self, base: Backbone, tokens: Tokens, cut: int, rng: np.random.Generator
    ) -> Ragged | None:
        """What the vendor would receive for public `tokens`: the mechanism as an attacker's tool.

        It uses what the vendor knows: the initial weights and the public parameters, with noise
        from `rng`; what is secret in a run, such as what its texts decide, has no part in it.

        Returns:
            Vectors [T, d] at the cut, or rows of E where tokens are sent; one vector per text, as
            sequences of length 1, where that is what is sent; None where there is no mechanism to
            simulate.
        """
        return None
