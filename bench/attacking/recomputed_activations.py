"""Activations of received texts that a server recomputes under received adapter weights.

Each call sends θ and tokens, or names vectors that were sent before; the vendor holds the base weights. So a server can
compute h(x, θ_t) of any received text x at any received θ_t.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leakboard.bench.attacking.adapter_gradients import adapter_of, load, vectors_of
from leakboard.bench.attacking.label_leakage import Matrix, evenly_spaced, matrices
from leakboard.bench.backbones import Network, Ragged, Tokens, by_length
from leakboard.bench.contracts import Channel, Ints, Message, Transcript
from leakboard.bench.methods import Silent

INPUTS = (Channel.TOKENS, Channel.REPRESENTATIONS)
"""Channels of the texts of calls: ids, or vectors that were sent once."""
TEXTS = 2000
"""Largest number of texts per server, for the untrained model and for the last θ."""
BETWEEN = 0.25
"""Share of these texts for every other θ; all of them would take longer than training."""
MOMENTS = 5
"""Number of evenly spaced θ, from the untrained model to the last one that was sent."""
BATCH = 64
"""Number of texts per batch, sorted by length."""
UNTRAINED = -1
"""Step of the activations of the untrained model."""

Floats = NDArray[np.float32]
Series = Mapping[int, Mapping[int, Message]]
"""θ [P] by step and adapter."""
Segments = Callable[[Ragged], Tensor]
"""Function from token ids to the segment of each token [T]."""
UntrainedCache = MutableMapping[str, Floats]
"""Activations of texts under the untrained model, by digest; cells of one model can share them."""


def with_recomputed(
    seen: Transcript,
    network: Network,
    segments: Segments | None = None,
    known: UntrainedCache | None = None,
    texts: int = TEXTS,
) -> Transcript:
    """The transcript with h(x, θ_t) of the texts of each server, on the channel `RECOMPUTED`.

    The first moment is the public model h(x, θ_0), as part 0, since an untrained adapter has no effect. At later
    moments, each adapter that the server received is a part. Dropout is not repeated.

    Args:
        network: the vendor's model; its adapter is overwritten.
        segments: segments of the tokens of texts; by default, and for vectors, each text is one segment.
        known: cache of activations of the untrained model, which is read and filled.
    """
    channel = next((each for each in INPUTS if each in seen.channels), None)
    if Channel.RECOMPUTED in seen.channels or Channel.ACTIVATIONS not in seen.channels:
        return seen
    if channel is None:
        return seen
    known = {} if known is None else known
    messages: list[Message] = []
    for server, sent in _texts(seen, channel).items():
        rows = np.array(evenly_spaced(sorted(sent), texts))
        ids = Ragged(
            torch.from_numpy(np.concatenate([sent[row] for row in rows.tolist()])),
            torch.tensor([len(sent[row]) for row in rows.tolist()]),
        )
        types = torch.zeros(len(ids.values), dtype=torch.long)
        if segments is not None and channel == Channel.TOKENS:
            types = segments(ids)
        tokens = Tokens(ids, types, torch.zeros_like(types, dtype=torch.bool))
        name = tokens.digest
        if name not in known:
            known[name] = activations(network, tokens, None)
        messages.append(_computed(server, 0, rows, known[name], UNTRAINED, 0))
        adapters = _adapters(seen, server, network)
        steps = evenly_spaced(sorted(adapters), MOMENTS)[1:]
        for moment, step in enumerate(steps, start=1):
            share = 1.0 if step == steps[-1] else BETWEEN
            at = evenly_spaced(range(len(rows)), max(1, round(share * len(rows))))
            chosen = tokens.take(torch.tensor(at))
            for part, theta in sorted(adapters[step].items()):
                h = activations(network, chosen, theta.values)
                messages.append(_computed(server, part, rows[at], h, step, moment))
    return Transcript((*seen.messages, *messages), seen.dropped)


@torch.no_grad()
def activations(network: Network, texts: Tokens, adapter: Floats | None) -> Floats:
    """[n, d] h(x, θ) of texts, without dropout.

    Args:
        texts: with ids [T], or with vectors [T, d] in their place.
        adapter: [P] θ; None for the model without an adapter.
    """
    network.eval()
    size = sum(parameter.numel() for parameter in adapter_of(network).values())
    load(network, torch.zeros(size) if adapter is None else torch.tensor(adapter))
    batches = by_length(texts.lengths, BATCH)
    outputs = []
    for rows in batches:
        batch = texts.take(rows)
        words = vectors_of(network, batch.ids)
        outputs.append(network.features(words, batch.types).float().cpu())
    return np.asarray(torch.cat(outputs)[torch.cat(batches).argsort()])


def against_untrained(seen: Transcript) -> Iterator[tuple[Matrix, Floats]]:
    """Pairs of recomputed activations under a received θ, and h(x, θ_0) of the same texts [n, d].

    Raises:
        Silent: no activations could be recomputed, or only those of the untrained model.
    """
    computed = list(matrices(seen, channels=(Channel.RECOMPUTED,)))
    untrained = {matrix.recipient: matrix for matrix in computed if matrix.moment == 0}
    if not untrained:
        raise Silent(
            "no tokens with activations were seen, from which a server could compute others"
        )
    if len(computed) == len(untrained):
        raise Silent("no adapter was sent at any moment of training, so that nothing has moved")
    for matrix in computed:
        start = untrained[matrix.recipient]
        if matrix is not start:
            yield matrix, start.values[np.searchsorted(start.rows, matrix.rows)]


def before_training(seen: Transcript) -> Transcript:
    """Transcript of the same texts at the same moments without training; empty if no h(x, θ_0) was computed.

    It has activations only. Untrained adapters have no effect, so one adapter is used for all.
    """
    start = {
        row: h
        for m in seen.messages
        if m.channel == Channel.RECOMPUTED and m.moment == 0
        for row, h in zip(m.rows.tolist(), m.values, strict=True)
    }
    parts: dict[tuple[str, int | None], int] = {}
    messages = []
    for message in seen.messages:
        if (message.channel, message.split) == (
            Channel.RECOMPUTED,
            "train",
        ) and message.moment == 0:
            messages.append(message)
        if (message.channel, message.split) != (Channel.ACTIVATIONS, "train"):
            continue
        known = np.array([row in start for row in message.rows.tolist()])
        place = (message.recipient, message.moment)
        if known.any() and parts.setdefault(place, message.part) == message.part:
            rows = message.rows[known]
            values = np.stack([start[row] for row in rows.tolist()])
            messages.append(replace(message, rows=rows, values=values))
    return Transcript(tuple(messages))


def _computed(server: str, part: int, rows: Ints, h: Floats, step: int, moment: int) -> Message:
    """A message with activations that a server computed itself."""
    where = (Channel.RECOMPUTED, "train", 0)
    return Message(*where, "vendor", server, part, rows, h, None, step, moment)


def _texts(seen: Transcript, channel: Channel) -> dict[str, dict[int, NDArray[Any]]]:
    """Token ids or vectors by server and row of `train`."""
    texts: dict[str, dict[int, NDArray[Any]]] = {}
    for message in seen.messages:
        if (message.channel, message.split) == (channel, "train"):
            assert message.lengths is not None
            ends = np.cumsum(message.lengths)
            each = np.split(message.values, ends[:-1])
            of_server = texts.setdefault(message.recipient, {})
            for row, ids in zip(message.rows.tolist(), each, strict=True):
                of_server.setdefault(row, ids)
    return texts


def _adapters(seen: Transcript, server: str, network: Network) -> Series:
    """Recorded adapters of a server that have the size of the model's adapter."""
    size = sum(parameter.numel() for parameter in adapter_of(network).values())
    sent = [
        m
        for m in seen.messages
        if (m.channel, m.split, m.recipient) == (Channel.PARAMETERS, "train", server)
        and m.step >= 0
        and m.values.size == size
    ]
    sent.sort(key=lambda message: message.step)
    return {
        step: {message.part: message for message in own}
        for step, own in groupby(sent, key=lambda message: message.step)
    }
