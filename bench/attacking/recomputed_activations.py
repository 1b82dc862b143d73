"""Activations of received texts that a server recomputes under received adapter weights.

Each call sends tokens and θ, and the vendor holds the base weights. So a server can compute h(x, θ_t) of any received
text x at any received θ_t.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import replace
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leakboard.bench.attacking.adapter_gradients import adapter_of, load
from leakboard.bench.attacking.label_leakage import Matrix, evenly_spaced, matrices
from leakboard.bench.backbones import Network, Ragged, Tokens, by_length
from leakboard.bench.contracts import Channel, Ints, Message, Transcript
from leakboard.bench.methods import Silent

TEXTS = 2000
"""At most so many texts of a server are computed anew, for the untrained model and for the last θ."""
BETWEEN = 0.25
"""The share of these for each θ between, which are there for what rises and falls again: all of them
would take more of a cell's time than goes into its training."""
MOMENTS = 5
"""Of θ: the untrained model, the last one that was sent, and three between, evenly spaced."""
BATCH = 64
"""Texts that go through the model at once, sorted by length."""
UNTRAINED = -1
"""The step at which the activations of the untrained model stand."""

Floats = NDArray[np.float32]
Series = Mapping[int, Mapping[int, Message]]
"""Step → adapter → its θ [P]."""
Segments = Callable[[Ragged], Tensor]
"""Token ids → the segment of each token [T]."""
UntrainedCache = MutableMapping[str, Floats]
"""Digest of texts → their activations under the untrained model: cells of one model can share them."""


def with_recomputed(
    seen: Transcript,
    network: Network,
    segments: Segments | None = None,
    known: UntrainedCache | None = None,
    texts: int = TEXTS,
) -> Transcript:
    """The transcript with h(x, θ_t) of the texts of each server on a channel of their own.

    The first moment is h(x, θ_0): an adapter starts without effect, so that this is the public model,
    the same for all adapters (part 0). Of the others each adapter that the server was sent is a part.
    Dropout is not repeated.

    Args:
        network: the vendor's model; it loses the values of its adapter.
        segments: what the ids of texts tell of them; without it each is one segment.
        known: filled with what is computed of the untrained model, and read.
    """
    if (
        Channel.RECOMPUTED in seen.channels
        or not {Channel.TOKENS, Channel.ACTIVATIONS} <= seen.channels
    ):
        return seen
    known = {} if known is None else known
    found: list[Message] = []
    for server, sent in _texts(seen).items():
        rows = np.array(evenly_spaced(sorted(sent), texts))
        ids = Ragged(
            torch.from_numpy(np.concatenate([sent[row] for row in rows.tolist()])),
            torch.tensor([len(sent[row]) for row in rows.tolist()]),
        )
        types = torch.zeros_like(ids.values) if segments is None else segments(ids)
        tokens = Tokens(ids, types, torch.zeros_like(types, dtype=torch.bool))
        name = tokens.digest
        if name not in known:
            known[name] = activations(network, tokens, None)
        found.append(_computed(server, 0, rows, known[name], UNTRAINED, 0))
        adapters = _adapters(seen, server, network)
        steps = evenly_spaced(sorted(adapters), MOMENTS)[1:]
        for moment, step in enumerate(steps, start=1):
            share = 1.0 if step == steps[-1] else BETWEEN
            at = evenly_spaced(range(len(rows)), max(1, round(share * len(rows))))
            own = tokens.take(torch.tensor(at))
            for part, theta in sorted(adapters[step].items()):
                h = activations(network, own, theta.values)
                found.append(_computed(server, part, rows[at], h, step, moment))
    return Transcript((*seen.messages, *found), seen.dropped)


@torch.no_grad()
def activations(network: Network, texts: Tokens, adapter: Floats | None) -> Floats:
    """[n, d] h(x, θ) of texts, without dropout.

    Args:
        adapter: [P] θ as it was sent; None for a model without any.
    """
    network.eval()
    size = sum(parameter.numel() for parameter in adapter_of(network).values())
    load(network, torch.zeros(size) if adapter is None else torch.tensor(adapter))
    device = network.embeddings.weight.device
    batches = by_length(texts.lengths, BATCH)
    found = []
    for rows in batches:
        own = texts.take(rows)
        words = own.ids.with_values(network.embeddings(own.ids.values.to(device)))
        found.append(network.features(words, own.types).float().cpu())
    return np.asarray(torch.cat(found)[torch.cat(batches).argsort()])


def against_untrained(seen: Transcript) -> Iterator[tuple[Matrix, Floats]]:
    """What each server computes under each θ that it was sent, beside h(x, θ_0) of the same texts [n, d].

    Raises:
        Silent: nothing was computed, or only of the untrained model.
    """
    whole = list(matrices(seen, channels=(Channel.RECOMPUTED,)))
    untrained = {matrix.recipient: matrix for matrix in whole if matrix.moment == 0}
    if not untrained:
        raise Silent(
            "no tokens with activations were seen, from which a server could compute others"
        )
    if len(whole) == len(untrained):
        raise Silent("no adapter was sent at any moment of training, so that nothing has moved")
    for matrix in whole:
        start = untrained[matrix.recipient]
        if matrix is not start:
            yield matrix, start.values[np.searchsorted(start.rows, matrix.rows)]


def before_training(seen: Transcript) -> Transcript:
    """What would have been seen, and computed, of the same texts at the same moments without training.

    Activations alone, of texts whose h(x, θ_0) was computed; empty where none was. Adapters without
    effect differ in nothing, so that one stands for all.
    """
    start = {
        row: h
        for m in seen.messages
        if m.channel == Channel.RECOMPUTED and m.moment == 0
        for row, h in zip(m.rows.tolist(), m.values, strict=True)
    }
    parts: dict[tuple[str, int | None], int] = {}
    found = []
    for message in seen.messages:
        if (message.channel, message.split) == (
            Channel.RECOMPUTED,
            "train",
        ) and message.moment == 0:
            found.append(message)
        if (message.channel, message.split) != (Channel.ACTIVATIONS, "train"):
            continue
        known = np.array([row in start for row in message.rows.tolist()])
        place = (message.recipient, message.moment)
        if known.any() and parts.setdefault(place, message.part) == message.part:
            rows = message.rows[known]
            values = np.stack([start[row] for row in rows.tolist()])
            found.append(replace(message, rows=rows, values=values))
    return Transcript(tuple(found))


def _computed(server: str, part: int, rows: Ints, h: Floats, step: int, moment: int) -> Message:
    """Activations that a server computed, as a message that nobody had to send."""
    where = (Channel.RECOMPUTED, "train", 0)
    return Message(*where, "vendor", server, part, rows, h, None, step, moment)


def _texts(seen: Transcript) -> dict[str, dict[int, Ints]]:
    """Server → row of `train` → the ids that it was sent of it."""
    found: dict[str, dict[int, Ints]] = {}
    for message in seen.messages:
        if (message.channel, message.split) == (Channel.TOKENS, "train"):
            assert message.lengths is not None
            ends = np.cumsum(message.lengths)
            each = np.split(message.values, ends[:-1])
            own = found.setdefault(message.recipient, {})
            for row, ids in zip(message.rows.tolist(), each, strict=True):
                own.setdefault(row, ids)
    return found


def _adapters(seen: Transcript, server: str, network: Network) -> Series:
    """The adapters of a server as far as they were recorded; none of another size than the model has."""
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
