"""Groups the messages of a transcript into the batches of training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leakboard.bench.contracts import Channel, Ints, Message, Transcript


@dataclass(frozen=True)
class Batch:
    """Messages to one recipient about one batch and one adapter.

    Attributes:
        rows: [B] rows of the split `train`.
        parts: [m] parts of the gradients.
        vectors: [m, B, d] all gradients that this recipient received.
        activations: [B, d]; None if not recorded.
        tokens: ids of the batch, which come with each call; or its vectors, if these were sent once and recorded.
        adapter: [P] θ, which comes with each call.
    """

    step: int
    rows: Ints
    parts: list[int]
    vectors: NDArray[np.float32]
    activations: NDArray[np.float32] | None
    tokens: Message | None
    adapter: NDArray[np.float32] | None


def batches(seen: Transcript, moment: int) -> dict[tuple[str, int], list[Batch]]:
    """Batches at a moment of training by (recipient, adapter), in the order of the steps.

    If a gradient is sent as m vectors, those of adapter i are the parts i·m to i·m + m − 1.
    """
    of_moment = [m for m in seen.messages if (m.split, m.moment) == ("train", moment)]
    by: dict[tuple[Channel, int, int], Message] = {}
    for message in of_moment:
        by.setdefault((message.channel, message.step, message.part), message)
    sent = [message for message in of_moment if message.channel == Channel.GRADIENTS]
    adapters = {part for channel, _, part in by if channel == Channel.ACTIVATIONS} or {0}
    vectors = max(1, len({message.part for message in sent}) // len(adapters))
    vectors_of = _sent_once(seen)
    together: dict[tuple[str, int], dict[int, list[Message]]] = {}
    for message in sent:
        place = together.setdefault((message.recipient, message.part // vectors), {})
        place.setdefault(message.step, []).append(message)
    found: dict[tuple[str, int], list[Batch]] = {}
    for (recipient, adapter), steps in together.items():
        for step, messages in sorted(steps.items()):
            h = by.get((Channel.ACTIVATIONS, step, adapter))
            theta = by.get((Channel.PARAMETERS, step, adapter))
            batch = Batch(
                step,
                messages[0].rows,
                [message.part for message in messages],
                np.stack([message.values for message in messages]),
                None if h is None else h.values,
                by.get((Channel.TOKENS, step, 0)) or vectors_of(messages[0].rows),
                None if theta is None else theta.values,
            )
            found.setdefault((recipient, adapter), []).append(batch)
    return found


def _sent_once(seen: Transcript) -> Callable[[Ints], Message | None]:
    """Function from rows of `train` to their representations, as one message; None unless all were recorded."""
    sent: dict[int, tuple[Message, int, int]] = {}
    for m in seen.messages:
        if (m.channel, m.split) == (Channel.REPRESENTATIONS, "train") and m.lengths is not None:
            ends = np.cumsum(m.lengths)
            for row, end, length in zip(m.rows.tolist(), ends, m.lengths, strict=True):
                sent.setdefault(row, (m, end - length, end))

    def vectors_of(rows: Ints) -> Message | None:
        if not all(row in sent for row in rows.tolist()):
            return None
        own = [sent[row] for row in rows.tolist()]
        values = np.concatenate([m.values[start:end] for m, start, end in own])
        lengths = np.array([end - start for _, start, end in own])
        return replace(own[0][0], rows=rows, values=values, lengths=lengths)

    return vectors_of
