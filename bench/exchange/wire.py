"""The trust boundary: everything that is sent over the wire is counted and recorded; the vendor sees nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from leakboard.bench.backbones import Ragged
from leakboard.bench.contracts import (
    ANSWERED,
    Channel,
    Envelope,
    Ints,
    LeakboardError,
    Message,
    Party,
    Transcript,
)
from leakboard.bench.exchange.spill import Spill

Payload = TypeVar("Payload", Tensor, Ragged)
PLAIN = Envelope()
AT_MOMENTS = frozenset(
    {
        Channel.TOKENS,
        Channel.ACTIVATIONS,
        Channel.GRADIENTS,
        Channel.LOGITS,
        Channel.LOGIT_GRADIENTS,
        Channel.PARAMETERS,
    }
)
"""Channels of which every row is recorded at some moments of training. Vectors per token are not: there are many, and
their means over the recorded rows reveal as much about a label."""
MEMORY = 2**28
"""Bytes of a transcript that stay in memory; the remainder is mapped from disk. It changes no result, so it is not
part of a cell."""


class Wire:
    """Carries messages between customer and vendor.

    Args:
        emits: channels that the defense declares; sending on another one is an error.
        recorded: by split, the rows whose messages are recorded; the bytes of all rows are counted.
        budget: largest size of the recording in bytes, in memory and on disk; messages beyond it are dropped.
        memory: bytes of the recording that may stay in memory.

    Attributes:
        has_swapped: whether something that was sent at this step arrived in random order.
    """

    def __init__(
        self,
        emits: frozenset[Channel],
        recorded: dict[str, Ints],
        budget: int = 2**31,
        memory: int = MEMORY,
    ) -> None:
        self.emits = emits
        self.bytes_up = 0
        self.bytes_down = 0
        self._kept = {split: torch.from_numpy(np.sort(rows)) for split, rows in recorded.items()}
        self._left, self._memory_left = budget, memory
        self._dropped: Counter[Channel] = Counter()
        self._messages: list[Message] = []
        self._spill: Spill | None = None
        self._spilled: list[int] = []
        self._step, self._moment = -1, None  # type: tuple[int, int | None]
        self._share, self._only, self._swapping = 0.0, None, False  # type: float, Channel | None, bool
        self._orders = torch.Generator()
        self.has_swapped = False

    def at(self, step: int, moment: int | None) -> None:
        """Sets the step and moment of training of the next messages; (−1, None) outside of training."""
        self._step, self._moment = step, moment
        self.has_swapped = False
        if 0 < self._share < 1:
            drawn = float(torch.rand((), generator=self._orders)) < self._share
            self._swapping = drawn and step >= 0

    def swap(self, share: float, seed: int = 0, only: Channel | None = None) -> None:
        """From now on what the customer sends arrives in random order: each row is that of another example or token.

        Args:
            share: of the training steps at which this happens; 1 for everything, 0 for nothing.
            seed: of these steps and orders.
            only: the channel; None for all.
        """
        self._share, self._only, self._swapping = share, only, share == 1
        self._orders.manual_seed(seed)

    def send(
        self, channel: Channel, payload: Payload, rows: Tensor, where: Envelope = PLAIN
    ) -> Payload:
        """Sends one message and returns what arrives: the same numbers, detached from the sender's graph.

        Args:
            payload: [n, …] one row per example, or a `Ragged` with n sequences.
            rows: [n] rows of the split that the payload is about.

        Raises:
            LeakboardError: the defense does not declare this channel, or the shapes disagree.
        """
        self._check(channel)
        if len(payload) != len(rows):
            raise LeakboardError(f"{channel}: {len(payload)} payload rows for {len(rows)} examples")
        values = payload.values if isinstance(payload, Ragged) else payload
        arrived = values.detach()
        if self._swaps(channel, where):
            arrived = self._in_random_order(arrived)
        self._count(_size(payload), where.sender)
        self._record(channel, payload, rows.cpu(), where)
        return Ragged(arrived, payload.lengths) if isinstance(payload, Ragged) else arrived

    def send_adapter(
        self, channel: Channel, adapter: Mapping[str, Tensor], rows: Tensor, where: Envelope = PLAIN
    ) -> dict[str, Tensor]:
        """Sends parameters, or their gradients, as one vector for all `rows`.

        Parameters are recorded only at the moments of training. Gradients are not recorded, because whoever
        sees the call can compute them. The weights of an emulator are recorded when the customer returns them.
        """
        self._check(channel)
        arrived = {name: value.detach() for name, value in adapter.items()}
        if self._swaps(channel, where):
            arrived = {
                name: self._in_random_order(value.flatten()).view_as(value)
                for name, value in arrived.items()
            }
        self._count(sum(map(_size, arrived.values())), where.sender)
        if self._moment is not None and channel in AT_MOMENTS:
            vector = torch.cat([value.flatten() for value in arrived.values()])
            self._keep(channel, vector, None, rows.cpu(), where, self._moment)
        elif channel == Channel.EMULATOR and where.sender == "customer":
            vector = torch.cat([value.flatten() for value in arrived.values()])
            self._keep(channel, vector[None], None, rows.cpu(), where)
        return arrived

    def release(self, vector: Tensor, round: int, step: int) -> None:
        """Releases the trained parameters [P] of the model after epoch `round` and `step` steps."""
        self._check(Channel.MODEL)
        self._count(_size(vector), "customer")
        before, self._step = self._step, step
        where = Envelope(round, recipient="public")
        everybody = torch.zeros(1, dtype=torch.long)
        self._keep(Channel.MODEL, vector[None].detach(), None, everybody, where)
        self._step = before

    def repeat(self, *payloads: Tensor | Ragged) -> None:
        """Counts payloads that the customer sends again; they reveal nothing new and are not recorded."""
        self._count(sum(map(_size, payloads)), "customer")

    def _swaps(self, channel: Channel, where: Envelope) -> bool:
        return self._swapping and where.sender == "customer" and self._only in (None, channel)

    def _in_random_order(self, values: Tensor) -> Tensor:
        self.has_swapped = True
        order = torch.randperm(len(values), generator=self._orders)
        return values[order.to(values.device)]

    def _check(self, channel: Channel) -> None:
        if channel not in self.emits:
            raise LeakboardError(
                f"the defense sends {channel}, which its 'emits' does not declare "
                f"({', '.join(sorted(self.emits))}); attacks are paired by that declaration"
            )

    def _count(self, size: int, sender: Party) -> None:
        if sender == "customer":
            self.bytes_up += size
        else:
            self.bytes_down += size

    def _record(
        self, channel: Channel, payload: Tensor | Ragged, rows: Tensor, where: Envelope
    ) -> None:
        per_token = isinstance(payload, Ragged) and payload.values.ndim > 1
        if isinstance(payload, Ragged) and where.sender == "vendor" and ANSWERED in where.split:
            payload = payload.values[payload.lengths.cumsum(0) - 1]  # decides the next word
        elif per_token and channel == Channel.LOGITS:
            return  # sent by the vendor, and as large as the vocabulary for each token
        kept = torch.isin(rows, self._kept.get(where.split, rows[:0])).nonzero()[:, 0]
        if len(kept):
            self._keep(channel, *_rows_of(payload, kept), rows[kept], where)
        at_moment = self._moment is not None and where.split == "train" and not per_token
        if at_moment and channel in AT_MOMENTS:
            every = torch.arange(len(rows))
            self._keep(channel, *_rows_of(payload, every), rows, where, self._moment)

    def _keep(
        self,
        channel: Channel,
        values: Tensor,
        lengths: Tensor | None,
        rows: Tensor,
        where: Envelope,
        moment: int | None = None,
    ) -> None:
        """Records one message as read-only copies."""
        array = values.float() if values.is_floating_point() else values
        size = array.numel() * array.element_size()
        if size > self._left:
            self._dropped[channel] += size
            return
        self._left -= size
        arrived = array.cpu().numpy()
        if size > self._memory_left:
            self._spill = self._spill or Spill()
            self._spill.append(arrived)
            self._spilled.append(len(self._messages))
            arrived = arrived[:0]
        else:
            self._memory_left -= size
        arrived = np.array(arrived)
        about = np.array(rows.numpy())
        sizes = None if lengths is None else np.array(lengths.numpy())
        for one in (arrived, about, sizes):
            if one is not None:
                one.setflags(write=False)
        self._messages.append(
            Message(
                channel,
                **vars(where),
                rows=about,
                values=arrived,
                lengths=sizes,
                step=self._step,
                moment=moment,
            )
        )

    def transcript(self) -> Transcript:
        """The transcript so far."""
        messages = list(self._messages)
        if self._spill:
            for i, values in zip(self._spilled, self._spill.arrays(), strict=True):
                messages[i] = replace(messages[i], values=values)
        return Transcript(tuple(messages), dict(self._dropped))


def _rows_of(payload: Tensor | Ragged, rows: Tensor) -> tuple[Tensor, Tensor | None]:
    """Values and lengths of some rows of a payload."""
    if isinstance(payload, Ragged):
        chosen = payload.take(rows)
        return chosen.values.detach(), chosen.lengths
    return payload[rows].detach(), None


def _size(payload: Tensor | Ragged) -> int:
    """Size in bytes; the lengths of sequences are sent as 32-bit integers."""
    if isinstance(payload, Ragged):
        return _size(payload.values) + 4 * len(payload)
    return payload.numel() * payload.element_size()
