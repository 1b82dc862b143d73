"""Requests by which a tuned language model answers prompts, as messages of the shape that attacks read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from leakboard.bench.contracts import Channel, Message, Transcript

REQUESTS = 8
"""Largest number of requests per text that become rounds; the last ones of a text are the longest."""

Array = NDArray[np.generic]


def with_requests_as_rounds(seen: Transcript, split: str) -> Transcript:
    """The transcript with one message per round for the requests of a split, each about every text.

    The customer asks for each token of an answer with all tokens before it. So a text of p tokens with an answer of A
    tokens is sent A times, at last with p + A − 1 tokens. Round 0 is its last request, round 1 the one before, up to
    `REQUESTS`; token ids do not change, so they have one round. Tokens that an earlier request lacks are those of the
    last one, and a text of fewer requests repeats its first one. The vendor's vectors, each of which decided one token,
    become one message of A vectors per text.
    """
    requests: dict[tuple[Channel, str, str, int], dict[int, list[Array]]] = {}
    for message in seen.messages:
        if message.split == split:
            key = (message.channel, message.sender, message.recipient, message.part)
            texts = requests.setdefault(key, {})
            for row, values in _by_row(message):
                texts.setdefault(row, []).append(values)
    found = [message for message in seen.messages if message.split != split]
    for (channel, sender, recipient, part), texts in requests.items():
        rows = np.array(sorted(texts))
        every = [texts[row] for row in rows.tolist()]
        if sender == "vendor":
            rounds = [[np.concatenate(sent) for sent in every]]
        else:
            most = 1 if channel == Channel.TOKENS else min(REQUESTS, max(map(len, every)))
            rounds = [[_request(sent, back) for sent in every] for back in range(most)]
        for number, parts in enumerate(rounds):
            lengths = np.array([len(values) for values in parts])
            content = rows, np.concatenate(parts), lengths
            found.append(Message(channel, split, number, sender, recipient, part, *content))  # type: ignore[arg-type]
    return Transcript(tuple(found), seen.dropped)


def _by_row(message: Message) -> Iterator[tuple[int, Array]]:
    lengths = np.ones(len(message.rows), int) if message.lengths is None else message.lengths
    parts = np.split(message.values, np.cumsum(lengths)[:-1])
    yield from zip(message.rows.tolist(), parts, strict=True)


def _request(sent: list[Array], back: int) -> Array:
    """The request so many before the last, completed to the length of the last."""
    earlier = sent[max(0, len(sent) - 1 - back)]
    return np.concatenate([earlier, sent[-1][len(earlier) :]])
