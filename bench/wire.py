"""The trust boundary. What is sent here is counted and recorded; what is not sent was not seen."""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeVar, overload

import numpy as np
import torch
from torch import Tensor

from bench.errors import LeakboardError
from bench.ragged import Ragged
from bench.types import Channel, Ints, Message, Party, Transcript

Payload = TypeVar("Payload", Tensor, Ragged)


class Wire:
    """Carries messages between customer and vendor.

    Args:
        emits: the channels that the defense declares; any other one is refused.
        recorded: per split the rows whose messages are kept; every byte is counted all the same.
        budget: bytes that the recording may take.
    """

    def __init__(
        self, emits: frozenset[Channel], recorded: dict[str, Ints], budget: int = 2**31
    ) -> None:
        self.emits = emits
        self.bytes_up = 0
        self.bytes_down = 0
        self._kept = {split: torch.from_numpy(np.sort(rows)) for split, rows in recorded.items()}
        self._left = budget
        self._dropped: Counter[Channel] = Counter()
        self._messages: list[Message] = []

    @overload
    def send(
        self,
        channel: Channel,
        payload: Tensor,
        rows: Tensor,
        *,
        round: int = ...,
        split: str = ...,
        sender: Party = ...,
        recipient: str = ...,
        part: int = ...,
    ) -> Tensor: ...
    @overload
    def send(
        self,
        channel: Channel,
        payload: Ragged,
        rows: Tensor,
        *,
        round: int = ...,
        split: str = ...,
        sender: Party = ...,
        recipient: str = ...,
        part: int = ...,
    ) -> Ragged: ...
    def send(
        self,
        channel: Channel,
        payload: Tensor | Ragged,
        rows: Tensor,
        *,
        round: int = 0,
        split: str = "train",
        sender: Party = "customer",
        recipient: str = "vendor",
        part: int = 0,
    ) -> Tensor | Ragged:
        """Sends one message and returns what arrives: the same numbers, cut from the sender's graph.

        Args:
            payload: [n, …] one row per example, or a `Ragged` with n sequences.
            rows: [n] which examples of `split` the payload is about.
            round: 0 for what is sent once, otherwise the epoch, from 0.
            part: tells apart several payloads about the same rows, such as one per adapter.

        Raises:
            LeakboardError: the defense does not declare this channel, or the shapes disagree.
        """
        if channel not in self.emits:
            raise LeakboardError(
                f"the defense sends {channel}, which its 'emits' does not declare "
                f"({', '.join(sorted(self.emits))}); attacks are paired by that declaration"
            )
        if len(payload) != len(rows):
            raise LeakboardError(f"{channel}: {len(payload)} payload rows for {len(rows)} examples")
        values = payload.values if isinstance(payload, Ragged) else payload
        arrived = values.detach()
        size = arrived.numel() * arrived.element_size()
        if isinstance(payload, Ragged):
            size += 4 * len(rows)  # the lengths travel too, as 32-bit integers
        if sender == "customer":
            self.bytes_up += size
        else:
            self.bytes_down += size
        self._record(channel, payload, rows.cpu(), (round, split, sender, recipient, part))
        return Ragged(arrived, payload.lengths) if isinstance(payload, Ragged) else arrived

    def _record(
        self, channel: Channel, payload: Tensor | Ragged, rows: Tensor, where: tuple[Any, ...]
    ) -> None:
        round, split, sender, recipient, part = where
        kept = torch.isin(rows, self._kept.get(split, rows[:0])).nonzero()[:, 0]
        if not len(kept):
            return
        lengths = None
        if isinstance(payload, Ragged):
            chosen = payload.take(kept)
            values, lengths = chosen.values, chosen.lengths.numpy()
            lengths.setflags(write=False)
        else:
            values = payload[kept]
        array = values.detach().float() if values.is_floating_point() else values.detach()
        size = array.numel() * array.element_size()
        if size > self._left:
            self._dropped[channel] += size
            return
        self._left -= size
        copy, about = array.cpu().numpy().copy(), rows[kept].numpy()
        copy.setflags(write=False)
        about.setflags(write=False)
        self._messages.append(
            Message(channel, split, round, sender, recipient, part, about, copy, lengths)
        )

    def transcript(self) -> Transcript:
        """All that was recorded so far."""
        return Transcript(tuple(self._messages), dict(self._dropped))
