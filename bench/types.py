"""The nouns of the benchmark. This module imports no torch, so that listing methods stays quick."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from torch import Tensor

    from bench.backbones import Backbone
    from bench.ragged import Ragged, Tokens
    from bench.released import Trainee
    from bench.session import Session

Ints = NDArray[np.int64]
Party = Literal["customer", "vendor"]
BLOCK = 2**26
"""Bytes of a block of a transcript that is read piece by piece."""
Objective = Literal["classification", "language modelling"]
Measure = Literal[
    "accuracy",
    "balanced accuracy",
    "auc",
    "matching",
    "exposure",
    "extraction",
    "beam extraction",
    "membership",
]


class Channel(StrEnum):
    """What an adversary can see crossing the trust boundary."""

    TOKENS = "tokens"
    """Token ids of the inputs, one row of ids per example."""
    REPRESENTATIONS = "representations"
    """Vectors at the cut, one per token: what split learning sends instead of the text."""
    ACTIVATIONS = "activations"
    """Pooled output h(x, θ) of the vendor's model, one vector per example."""
    GRADIENTS = "gradients"
    """∂loss/∂h, one vector per example."""
    LOGITS = "logits"
    """Class scores that the vendor returns."""
    LOGIT_GRADIENTS = "logit-gradients"
    """∂loss/∂logits, one vector per example."""
    CUT_GRADIENTS = "cut-gradients"
    """∂loss/∂representation that the vendor returns to a trainable bottom, one vector per token."""
    PARAMETERS = "parameters"
    """Adapter parameters θ sent to the vendor, one vector per call."""
    ADAPTER_GRADIENTS = "adapter-gradients"
    """∂loss/∂θ that the vendor returns, one vector per call; whoever sees the call can compute it."""
    MODEL = "model"
    """The released model: what was trained of it, as one vector, after each epoch; the last counts."""


class Goal(StrEnum):
    """What an attack guesses."""

    INVERSION = "inversion"
    ATTRIBUTE = "attribute"
    LABEL = "label"
    MEMORISATION = "memorisation"
    MEMBERSHIP = "membership"


class Knows(StrEnum):
    """What an attack must be told besides the transcript."""

    BASE_WEIGHTS = "base weights"
    MECHANISM = "mechanism"
    AUXILIARY_TEXT = "auxiliary text"
    LABELLED_SHARE = "labelled share"
    LABELS = "labels of other folds"
    COLLUSION = "collusion"
    SHADOWS = "shadow models"
    """Models that the attacker trains like the target, on examples of its choice."""
    QUERIES = "queries"
    """What the customer's side would send for texts of the attacker's choice, without its weights."""


@dataclass(frozen=True)
class Source:
    """Where a method comes from."""

    title: str
    where: str = ""
    """Section, equation, figure or table."""
    url: str = ""

    def __str__(self) -> str:
        return f"{self.title}, {self.where}" if self.where else self.title


@dataclass(frozen=True)
class ThreatModel:
    """What an attack guesses, what it reads and what it must know."""

    goals: frozenset[Goal]
    reads: frozenset[Channel]
    """Any one of these channels is enough; an empty set reads nothing and applies everywhere."""
    knows: frozenset[Knows] = frozenset()


@dataclass(frozen=True)
class Message:
    """One recorded message. Arrays are read-only copies.

    Attributes:
        rows: [n] indices of the examples in their split.
        values: [n, …], or [T, …] with one entry per token where `lengths` is given.
        lengths: [n] tokens per example, T = lengths.sum().
        step: of training; −1 outside of it.
        moment: one of the windows of training in which every row is kept; None for the rows that
            are recorded throughout.
    """

    channel: Channel
    split: str
    round: int
    sender: Party
    recipient: str
    part: int
    rows: Ints
    values: NDArray[Any]
    lengths: Ints | None = None
    step: int = -1
    moment: int | None = None


@dataclass(frozen=True)
class Collected:
    """All messages of one channel and round as one block, ordered by row; fields as in `Message`."""

    rows: Ints
    values: NDArray[Any]
    lengths: Ints | None


@dataclass(frozen=True)
class Transcript:
    """What the adversary saw, in the order in which it crossed the wire."""

    messages: Sequence[Message] = ()
    dropped: dict[Channel, int] = field(default_factory=dict)
    """Bytes of each channel that the recording budget kept out; such a record is flagged."""

    @property
    def dropped_bytes(self) -> int:
        return sum(self.dropped.values())

    @property
    def channels(self) -> frozenset[Channel]:
        return frozenset(m.channel for m in self.messages)

    def splits(self, channel: Channel) -> list[str]:
        """Splits seen on a channel, in order of appearance."""
        return list(dict.fromkeys(m.split for m in self.messages if m.channel == channel))

    def rounds(self, channel: Channel, split: str = "train") -> list[int]:
        return sorted(
            {
                m.round
                for m in self.messages
                if (m.channel, m.split, m.moment) == (channel, split, None)
            }
        )

    def moments(self, channel: Channel) -> list[int]:
        """Windows of training in which something was seen on a channel."""
        found = (m.moment for m in self.messages if m.channel == channel)
        return sorted({moment for moment in found if moment is not None})

    def parts(self, channel: Channel, moment: int | None = None) -> list[tuple[str, int]]:
        """Recipient and part of what was sent of `train`, in order of appearance."""
        return list(
            dict.fromkeys(
                (m.recipient, m.part)
                for m in self.messages
                if (m.channel, m.split, m.moment) == (channel, "train", moment)
            )
        )

    def only(self, channels: frozenset[Channel]) -> Transcript:
        """The transcript of somebody who reads these channels: the others hold zeros.

        Which examples were sent, and how long they are, can be seen on every channel.
        """

        def hidden(message: Message) -> Message:
            zeros = np.broadcast_to(np.zeros((), message.values.dtype), message.values.shape)
            return replace(message, values=zeros)

        shown = (m if m.channel in channels else hidden(m) for m in self.messages)
        return Transcript(tuple(shown), self.dropped)

    def collect(
        self,
        channel: Channel,
        split: str = "train",
        round: int | None = 0,
        part: int = 0,
        moment: int | None = None,
        recipient: str | None = None,
    ) -> Collected:
        """Joins the messages of one channel, split, round and part.

        Args:
            round: None joins all rounds.
            moment: what was sent in this window of training, of every row.
            recipient: None joins what all recipients saw.

        Raises:
            KeyError: nothing was recorded there.
        """
        return next(self.blocks(channel, split, round, part, moment, recipient, size=None))

    def blocks(
        self,
        channel: Channel,
        split: str = "train",
        round: int | None = 0,
        part: int = 0,
        moment: int | None = None,
        recipient: str | None = None,
        size: int | None = BLOCK,
    ) -> Iterator[Collected]:
        """What `collect` joins, in the same order but in blocks, so that memory holds one at a time.

        Args:
            size: bytes of the values of a block, which holds at least one example; None for all.

        Raises:
            KeyError: nothing was recorded there.
        """
        found = [
            m
            for m in self.messages
            if (m.channel, m.split, m.part, m.moment) == (channel, split, part, moment)
            and round in (None, m.round)
            and recipient in (None, m.recipient)
        ]
        if not found:
            raise KeyError(f"no {channel} of {split}, round {round}, part {part} in the transcript")
        rows = np.concatenate([m.rows for m in found])
        order = np.argsort(rows, kind="stable")
        sizes = [np.ones(len(m.rows), np.int64) if m.lengths is None else m.lengths for m in found]
        lengths = np.concatenate(sizes)
        # Where the values of each example stand: in which message, and from where to where.
        source = np.repeat(np.arange(len(found)), [len(m.rows) for m in found])
        stops = np.concatenate([np.cumsum(each) for each in sizes])
        per_value = found[0].values.dtype.itemsize * int(np.prod(found[0].values.shape[1:]))
        ends, start = np.cumsum(lengths[order]) * per_value, 0
        while start < len(order):
            taken = ends[start - 1] if start else 0
            stop = len(order) if size is None else int(np.searchsorted(ends, taken + size, "right"))
            here = order[start : max(stop, start + 1)]
            parts = [found[source[i]].values[stops[i] - lengths[i] : stops[i]] for i in here]
            sent = None if found[0].lengths is None else lengths[here]
            yield Collected(rows[here], np.concatenate(parts), sent)
            start += len(here)


@dataclass(frozen=True)
class Auxiliary:
    """Public text, disjoint from every other split of the task.

    It is of the customer's kind, with its labels and attributes; or, where the attack's parameter
    `auxiliary` names another task, of that one's kind and without labels.
    """

    tokens: Tokens
    labels: Ints
    attributes: dict[str, Ints] = field(default_factory=dict)


Query = Callable[["Tokens", np.random.Generator], "Ragged"]


@dataclass(frozen=True)
class Labelled:
    """What the customers' own attributes are for a share of the recorded training examples.

    These rows are not scored: an attack is measured by what it finds out, not by what it was told.

    Attributes:
        rows: [m] sorted rows of the split `train`.
        attributes: per private attribute [m] indices of its values; −1 where unknown. Attributes
            of which nothing is left to find out are not there.
        values: per private attribute the number of its values, of which some may not occur.
    """

    rows: Ints
    attributes: dict[str, Ints]
    values: dict[str, int]


@dataclass(frozen=True)
class Shadows:
    """What an attacker measured of models of its own, which it trained like the target.

    Attributes:
        scores: [S, n] of every candidate under each of S models, by the attack's measure.
        members: [S, n] whether that model was trained on that candidate: half of them were, each on
            its own half, by coins that have nothing to do with the target's.
    """

    scores: NDArray[np.float64]
    members: NDArray[np.bool_]


@dataclass(frozen=True)
class Knowledge:
    """What an attack may use besides the transcript; fields it did not declare are None."""

    classes: int
    device: str
    cut: int = 0
    """Blocks below the trust boundary."""
    base: Backbone | None = None
    """The public model with its initial weights."""
    network: Callable[[], Trainee] | None = None
    """With the base weights: makes the vendor's or the released model, with room for what is trained."""
    mechanism: Defense | None = None
    """The defense with its public parameters."""
    auxiliary: Auxiliary | None = None
    labels: Ints | None = None
    """[N] labels of all examples of `train`, −1 for those of the fold that is to be guessed."""
    labelled: Labelled | None = None
    """A share of the customers' attributes; the attack's parameter `labelled` says how large."""
    query: Query | None = None
    """Answers with the vectors [T, d] that would be received for public tokens, with fresh noise."""
    vocabulary: int = 0
    """How many token ids there are; the tokeniser is public."""
    canaries: tuple[str, ...] = ()
    """Sentences with a place for {digits} that may have been trained on with some digits there."""
    candidates: Auxiliary | None = None
    """Examples of which each may have been trained on or not."""
    shadows: Shadows | None = None
    """Of models that the attacker trained itself, as many as `Attack.shadowed` says."""


@dataclass(frozen=True)
class Guess:
    """What an attack says, one entry per example, or per token where `lengths` is given.

    A guess about a label may be of three measures: the class itself; a number that ranks the
    examples, in either direction (AUC); or a cluster, whatever its class (matching). Guesses from
    what was sent at several moments, in several parts or to several recipients are scored together:
    the worst one and the last one count.

    A guess about a canary is about its sentence, a row of `Knowledge.canaries`: for each of all
    possible secrets how unlikely the model finds it (exposure, [n, 10^6]), or what it prints there
    (extraction, [n, R] numbers that the digits spell, −1 for none; R at most `bench.planting.TRIES`). A
    guess about membership ranks the rows of `Knowledge.candidates`: larger for those that were trained on.

    Attributes:
        rows: [n] the examples guessed about.
        values: [n] for one guess per example, real numbers only where they rank; [T, R] for R candidates per token, of which any
            may be right (the union over R observations); chance accounts for R.
        view: tells the guesses of one attack apart, such as the split they are about.
    """

    goal: Goal
    channel: Channel | None
    split: str
    rows: Ints
    values: NDArray[Any]
    lengths: Ints | None = None
    attribute: str | None = None
    view: str = ""
    measure: Measure = "accuracy"
    moment: int | None = None
    round: int = 0
    part: int = 0
    recipient: str | None = None


class Tuned(ABC):
    """A fine-tuned predictor, used the way the customer would use it."""

    @abstractmethod
    def predict(self, tokens: Tokens, split: str) -> Tensor:
        """Class scores [n, C] for the examples of `split`; whatever this sends goes over the wire."""


class Claim(BaseModel):
    """A formal guarantee, as its authors state it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    guarantee: str
    """Such as 'dχ-privacy' or '(ε, δ)-differential privacy'."""
    parameters: dict[str, float]
    covers: str
    """What the guarantee covers, and what it does not."""


class Method(BaseModel):
    """What defenses and attacks share: a name, a source, and parameters as fields of the class."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: ClassVar[str]
    source: ClassVar[Source]
    version: ClassVar[int] = 1
    """Raise it when a change alters results, so that old records no longer stand for the new method."""

    @property
    def params(self) -> dict[str, Any]:
        """All parameters, defaults included, as JSON values."""
        return self.model_dump(mode="json")

    def __str__(self) -> str:
        """The name and the parameters that were given, such as 'sap eta=75'."""
        given = self.model_dump(mode="json", exclude_unset=True)
        words = [f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in given.items()]
        return " ".join([self.name, *words]).replace("=None", "=none")


class Defense(Method, ABC):
    """A way to fine-tune that protects something of the customer's.

    A subclass sets `name`, `source` and `emits`, declares its parameters as fields and writes `fine_tune`.
    """

    emits: ClassVar[frozenset[Channel]]
    """Channels that cross the trust boundary; sending on another one is an error."""
    knob: ClassVar[str | None] = None
    """The parameter that trades utility for privacy; plots label points with it."""
    colour: ClassVar[str] = ""
    marker: ClassVar[str] = "o"
    measured_by: ClassVar[Mapping[Goal, tuple[str, ...]]] = MappingProxyType({})
    """The attacks by which its authors measure it; of several, the one that applies at the cut."""
    measured_on: ClassVar[frozenset[Channel]] = frozenset()
    """The channels on which those attacks count; empty for whatever they read."""

    objectives: ClassVar[frozenset[Objective]] = frozenset({"classification"})
    """What it can train a model for."""
    circumstances: ClassVar[frozenset[str]] = frozenset()
    """Parameters that say what befalls the defense, not what its user chooses: boards take the worst."""

    @abstractmethod
    def fine_tune(self, session: Session) -> Tuned:
        """Trains on `session.train`; all that the vendor learns goes through `session.wire`."""

    @property
    def undefended(self) -> bool:
        """True where these parameters switch the protection off: attacks are certified on such cells."""
        return False

    def claim(self) -> Claim | None:
        """The formal guarantee at these parameters, or None."""
        return None

    def refuses(self, cut: int) -> str | None:
        """Why the defense cannot run at this cut, or None."""
        return None

    def simulate(
        self, base: Backbone, tokens: Tokens, cut: int, rng: np.random.Generator
    ) -> Ragged | None:
        """What the vendor would receive for public `tokens`: the mechanism as an attacker's tool.

        It uses what the vendor knows: the initial weights and the public parameters, with noise
        from `rng`; what is secret in a run, such as what its texts decide, has no part in it.

        Returns:
            Vectors [T, d] at the cut, or rows of E where tokens are sent; None where there is no
            mechanism to simulate.
        """
        return None


class Attack(Method, ABC):
    """A way to guess what a defense should hide.

    A subclass sets `name`, `source` and `threat`, declares its parameters as fields and writes `guess`.
    """

    threat: ClassVar[ThreatModel]
    certified_at: ClassVar[float] = 0.0
    """Success that an undefended cell must show, besides an interval clear of chance, before the
    attack counts as evidence of privacy elsewhere."""
    folds: ClassVar[int] = 0
    """Where it knows labels: it is asked once per fold of the training examples, told the labels of
    the others, and guesses about the rows of that fold."""
    costly: ClassVar[bool] = False
    """True where it takes a large part of the time of a cell: a suite then has to name it, since
    `attacks: all` leaves it out."""

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
        """Guesses from the transcript alone; the first guess is the headline one."""

    def readable(self, cut: int) -> frozenset[Channel]:
        """Those channels of its threat model that tell it something at this cut."""
        return self.threat.reads

    def refuses(self, cut: int) -> str | None:
        """Why the attack cannot run at this cut, or None."""
        return None


Progress = Callable[[str, Iterable[Any], int], Iterable[Any]]
"""Wraps an iterable of known length to show progress: (what, items, total) → items."""
