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

BLOCK = 2**26
"""Bytes of a block of a transcript that is read piece by piece."""


@dataclass(frozen=True)
class Envelope:
    """What stands on a message: about which pass over which split it is, who sends it, and to whom.

    Attributes:
        round: 0 for what is sent once, otherwise the epoch, from 0.
        part: tells apart several payloads about the same rows, such as one per adapter.
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
        pairs = zip(self.messages, self._hidden, strict=True)
        shown = (m if m.channel in channels else hidden for m, hidden in pairs)
        return Transcript(tuple(shown), self.dropped)

    @cached_property
    def _hidden(self) -> tuple[Message, ...]:
        """The messages, all with zeros; once for all attacks that read a part of them."""
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
    """What an attack says, one entry per example, or per token where `lengths` is given.

    A guess about a label may be of three measures: the class itself; a number that ranks the
    examples, in either direction (AUC); or a cluster, whatever its class (matching). Guesses from
    what was sent at several moments, in several parts or to several recipients are scored together:
    the worst one and the last one count.

    A guess about an inversion may be a bag: the token ids that a text may hold, the likeliest first ([n, R],
    each once), whatever their order in the text. As many of them count as the text has different tokens.

    A guess about a canary is about its sentence, a row of `Knowledge.canaries`: for each of all
    possible secrets how unlikely the model finds it (exposure, [n, 10^6]), or what it prints there
    (extraction, [n, R] numbers that the digits spell, −1 for none; R at most `leakboard.bench.tasks.planting.TRIES`,
    and `SAMPLES` of random ones, whose shares decide). A continuation is about a row of `Knowledge.prompts`: the token
    ids that follow it ([n, 1 + R, L], the likeliest text first, then random ones; see `leakboard.bench.tasks.planting.CONTINUED`). A
    guess about membership ranks the rows of `Knowledge.candidates`: larger for those that were trained on.

    `rows`, `values` and `lengths` may be given as lists, NumPy arrays or torch tensors; they are NumPy
    arrays afterwards, whole numbers as int64.

    Attributes:
        rows: [n] the examples guessed about.
        values: [n] for one guess per example, real numbers only where they rank; [T, R] for R candidates per token, of which any
            may be right (the union over R observations); chance accounts for R.
        view: tells the guesses of one attack apart, such as the split they are about.
        bound: the largest success that the guarantee of the mechanism leaves to who knows as much.
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
        # An attack may compute with what it likes; scoring computes with NumPy.
        values = as_numbers(self.values, "Guess.values")
        if values.dtype.kind in "iu":
            values = values.astype(np.int64, copy=False)
        lengths = None if self.lengths is None else as_ints(self.lengths, "Guess.lengths")
        rows = as_ints(self.rows, "Guess.rows")
        for name, taken in (("rows", rows), ("values", values), ("lengths", lengths)):
            object.__setattr__(self, name, taken)
