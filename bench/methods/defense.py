"""The base class of defenses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal

from numpy.random import Generator

from leakboard.bench.contracts import Channel, Claim, Goal, Objective, TrainSettings
from leakboard.bench.exchange import Tuned
from leakboard.bench.methods.method import Method

if TYPE_CHECKING:
    from torch import Tensor

    from leakboard.bench.backbones import Backbone, Ragged, Tokens
    from leakboard.bench.exchange import Session
    from leakboard.bench.tasks import Split


Stage = Literal["inputs", "training", "labels"]
"""What a defense contributes to a combination: the inputs that are sent, the messages of training, or the labels."""
HEADS: Sequence[Mapping[str, object]] = [
    {"learning_rate": rate, "epochs": epochs, "batch_size": 64}
    for epochs in (10, 30)
    for rate in (1e-2, 3e-3, 3e-2, 1e-3)
]
"""Trials for training only a head, which costs very little."""


class Defense(Method, ABC):
    """A way to fine-tune that protects data of the customer.

    A subclass sets `name`, `source` and `emits`, declares its parameters as fields and writes `fine_tune`.
    """

    emits: ClassVar[frozenset[Channel]]
    """Channels that cross the trust boundary; sending on another one is an error."""
    knob: ClassVar[str | None] = None
    """Parameter that trades utility for privacy; plots label points with it."""
    switch: ClassVar[str | None] = None
    """Parameter that switches the protection off when it is None."""
    colour: ClassVar[str] = ""
    marker: ClassVar[str] = "o"
    protects: ClassVar[frozenset[Goal]] = frozenset()
    """Goals of attackers against which it is designed, in addition to those of `measured_by`."""
    measured_by: ClassVar[Mapping[Goal, tuple[str, ...]]] = MappingProxyType({})
    """Attacks by which its authors measure it; of several, the one that applies at the cut."""
    measured_on: ClassVar[frozenset[Channel]] = frozenset()
    """Channels on which these attacks count; empty for all channels that they read."""
    measured_worst: ClassVar[bool] = False
    """Whether its authors report the worst moment of each training."""

    least_blocks: ClassVar[int] = 1
    """Smallest number of blocks of a model that it can train."""
    hides_tokens: ClassVar[bool] = False
    """True if it sends other token ids than those of the texts."""
    objectives: ClassVar[frozenset[Objective]] = frozenset({"classification"})
    """Objectives for which it can train a model."""
    circumstances: ClassVar[frozenset[str]] = frozenset()
    """Parameters that its user does not choose, such as whether its detector finds canaries; boards
    use the worst value."""

    stage: ClassVar[Stage | None] = None
    """The stage of fine-tuning that it protects in a combination; None if it cannot be combined."""
    combined_name: ClassVar[str] = ""
    """Its name as part of a combination, if that is not `display_name`."""

    @abstractmethod
    def fine_tune(self, session: Session) -> Tuned:
        """Trains on `session.train`; everything that the vendor receives must be sent by `session.wire`."""

    @property
    def sends(self) -> frozenset[Channel]:
        """Channels on which it sends with these parameters; by default `emits`."""
        return self.emits

    @property
    def parts(self) -> tuple[Defense, ...]:
        """The defenses of which it is made: itself, unless it is a combination."""
        return (self,)

    @property
    def input_part(self) -> Defense:
        """The part that changes what is sent of the texts; itself if no part is for that alone."""
        return next((part for part in self.parts if part.stage == "inputs"), self)

    def protected_inputs(self, session: Session) -> Callable[[Tokens], Ragged]:
        """For the stage `inputs`: the vectors [T, d] at the cut that the customer sends for texts."""
        raise NotImplementedError(f"{self.name} has no stage 'inputs'")

    def changed_labels(self, session: Session) -> Tensor:
        """For the stage `labels`: the [n] labels on which the model is trained."""
        raise NotImplementedError(f"{self.name} has no stage 'labels'")

    def skip_combined(self, stages: frozenset[Stage]) -> str | None:
        """Reason why it cannot be part of a combination with these stages, or None."""
        return None

    @property
    def undefended(self) -> bool:
        """True if these parameters switch the protection off; attacks are certified on such cells."""
        return self.switch is not None and getattr(self, self.switch) is None

    @property
    def head_only(self) -> bool:
        """True if these parameters train only a head, on features that are computed once."""
        return False

    def twins(self, objective: Objective) -> tuple[Defense, ...]:
        """This defense with its protection off, followed by other defenses that send the same.

        An attack that fails on this defense counts only if it works on one of its twins. A plan adds the first
        twin to a suite without any. A defense has no twin if its protection is off or cannot be switched off.
        """
        if self.switch is None or self.undefended:
            return ()
        return (self.model_copy(update={self.switch: None}),)

    def tried(
        self, settings: TrainSettings, n: int, classes: int
    ) -> Sequence[Mapping[str, object]]:
        """Settings of training that `leakboard tune` tries instead of `settings`, most promising first.

        They are compared by utility on held-out training examples. A parameter of the defense may be among them if it
        only tells how to train. One that trades utility for privacy may not.

        Args:
            n: number of training examples.
            classes: number of classes; 0 for language modelling.

        Returns:
            The changes of each trial; empty if there is nothing to train.
        """
        if self.head_only or settings.tune == "head":
            return HEADS
        rate, epochs = settings.learning_rate, settings.epochs
        steps = ((3.0, 1), (0.3, 1), (1.0, 2), (3.0, 2), (0.3, 2), (0.1, 1), (0.1, 2))
        return [{"learning_rate": rate * up, "epochs": epochs * long} for up, long in steps]

    def claim(self) -> Claim | None:
        """The formal guarantee at these parameters, or None."""
        return None

    @property
    def has_claim(self) -> bool:
        """True if training with these parameters has a formal guarantee."""
        return self.claim() is not None

    def promises(self, n: int, settings: TrainSettings, whole: bool = True) -> Claim | None:
        """The guarantee for training on n examples, if it is known before training.

        Args:
            whole: include the profile, which may take seconds.
        """
        return self.claim()

    def as_trained(self, base: Backbone, split: Split) -> Split | None:
        """Examples as the mechanism changes them before training, as an attacker can compute them.

        An attacker applies it to texts that it has. Random draws of a run and manual corrections are left out.

        Returns:
            None if training uses examples unchanged.
        """
        return None

    def simulate(self, base: Backbone, tokens: Tokens, cut: int, rng: Generator) -> Ragged | None:
        """Vectors that the vendor would receive for public `tokens`: the mechanism as an attacker can simulate it.

        It uses only the initial weights, the public parameters and noise from `rng`, and no secret of a run.

        Returns:
            Vectors [T, d] at the cut, or embeddings if tokens are sent; one vector per text, as sequences of
            length 1, if the defense sends pooled vectors; None without a mechanism.
        """
        return None
