"""Input and output of an attack: the recorded messages, and the guesses made from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leakboard.bench.contracts.arrays import Ints, as_ints, as_numbers
from leakboard.bench.contracts.threat import Channel, Goal, Party

ANSWERED = ", answered"
"""End of the name of a split whose prompts the tuned model answers."""
BLOCK = 2**26
"""Default size in bytes of a block of `Transcript.blocks`."""


@dataclass(frozen=True)
class Envelope:
    """Metadata of a message: its split and round, its sender and its recipient.

    Attributes:
        round: the epoch, from 0; 0 for messages that are sent once.
        part: distinguishes payloads about the same rows, such as one per adapter.
    """

    round: int = 0
    split: str = "train"
    sender: Party = "customer"
    recipient: str = "vendor"
    part: int = 0


@dataclass(frozen=True)
class Message:
    """One recorded message. Arrays are read-only copies.

    Attributes:
        rows: [n] indices of the examples in their split.
        values: [n, …], or [T, …] with one entry per token where `lengths` is given.
        lengths: [n] tokens per example, T = lengths.sum().
        step: step of training; −1 outside of training.
        moment: number of the window of training in which every row is recorded; None for the rows
            that are recorded in every round.
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
    """Messages of one channel and round as one block, ordered by row; fields as in `Message`."""

    rows: Ints
    values: NDArray[Any]
    lengths: Ints | None


@dataclass(frozen=True)
class Transcript:
    """The messages that an adversary saw, in the order in which they crossed the wire."""

    messages: Sequence[Message] = ()
    dropped: dict[Channel, int] = field(default_factory=dict)
    """Bytes of each channel that exceeded the recording budget; such a record is flagged."""

    @property
    def dropped_bytes(self) -> int:
        return sum(self.dropped.values())

    @property
    def channels(self) -> frozenset[Channel]:
        return frozenset(m.channel for m in self.messages)

    def splits(self, channel: Channel) -> list[str]:
        """Splits on a channel, in order of appearance."""
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
        """Windows of training with messages on a channel."""
        found = (m.moment for m in self.messages if m.channel == channel)
        return sorted({moment for moment in found if moment is not None})

    def parts(self, channel: Channel, moment: int | None = None) -> list[tuple[str, int]]:
        """Recipient and part of the messages about `train`, in order of appearance."""
        return list(
            dict.fromkeys(
                (m.recipient, m.part)
                for m in self.messages
                if (m.channel, m.split, m.moment) == (channel, "train", moment)
            )
        )

    def only(self, channels: frozenset[Channel]) -> Transcript:
        """The transcript of an adversary who reads only these channels; values on the others are zeros.

        Rows and lengths remain visible on every channel.
        """
        pairs = zip(self.messages, self._hidden, strict=True)
        shown = (m if m.channel in channels else hidden for m, hidden in pairs)
        return Transcript(tuple(shown), self.dropped)

    @cached_property
    def _hidden(self) -> tuple[Message, ...]:
        """The messages with all values replaced by zeros; cached for all attacks."""
        return tuple(
            replace(m, values=np.broadcast_to(np.zeros((), m.values.dtype), m.values.shape))
            for m in self.messages
        )

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
            moment: joins the messages of this window of training, which contain every row.
            recipient: None joins the messages to all recipients.

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
        """The result of `collect` in blocks, so that memory holds one block at a time.

        Args:
            size: bytes of the values of a block, which has at least one example; None for a single block.

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
        # Message and range of the values of each example.
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


Measure = Literal[
    "accuracy",
    "bag",
    "balanced accuracy",
    "auc",
    "matching",
    "exposure",
    "extraction",
    "beam extraction",
    "sampled extraction",
    "continuation",
    "membership",
]


@dataclass(frozen=True)
class Guess:
    """Guesses of an attack, one entry per example, or per token if `lengths` is given.

    A guess about a label may use three measures: the class itself; a number that ranks the examples, in either
    direction (AUC); or a cluster, whatever its class (matching). Guesses from several moments, parts or recipients
    are scored together: the worst one and the last one count.

    A guess about an inversion may be a bag: token ids that may occur in a text, the likeliest first ([n, R], each
    once), in any order. The first k count, where k is the number of different tokens of the text.

    A guess about a canary is about its sentence, a row of `Knowledge.canaries`: for each of all
    possible secrets how unlikely the model finds it (exposure, [n, 10^6]), or what it prints there
    (extraction, [n, R] numbers that the digits spell, −1 for none; R at most `leakboard.bench.tasks.planting.TRIES`,
    and `SAMPLES` of random ones, whose shares decide). A continuation is about a row of `Knowledge.prompts`: the token
    ids that follow it ([n, 1 + R, L], the likeliest text first, then random ones; see `leakboard.bench.tasks.planting.CONTINUED`). A
    guess about membership ranks the rows of `Knowledge.candidates`: larger for those that were trained on. A guess
    about reidentification is for each example a row of `Knowledge.texts`.

    `rows`, `values` and `lengths` may be given as lists, NumPy arrays or torch tensors; they are NumPy
    arrays afterwards, whole numbers as int64.

    Attributes:
        rows: [n] rows of the examples.
        values: [n] for one guess per example, real numbers only where they rank; [T, R] for R candidates per token, of which any
            may be right (the union over R observations); chance accounts for R.
        view: distinguishes the guesses of one attack, for example by split.
        bound: largest success that the guarantee of the mechanism allows an attacker with this knowledge.
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
    bound: float | None = None

    def __post_init__(self) -> None:
        # An attack may return lists or tensors; scoring needs NumPy arrays.
        values = as_numbers(self.values, "Guess.values")
        if values.dtype.kind in "iu":
            values = values.astype(np.int64, copy=False)
        lengths = None if self.lengths is None else as_ints(self.lengths, "Guess.lengths")
        rows = as_ints(self.rows, "Guess.rows")
        for name, taken in (("rows", rows), ("values", values), ("lengths", lengths)):
            object.__setattr__(self, name, taken)
