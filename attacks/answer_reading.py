"""answer-reading: reads the answers of a tuned language model from the vendor's vectors."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.random import Generator

from leakboard.bench.contracts import (
    ANSWERED,
    Channel,
    Goal,
    Guess,
    Knows,
    ThreatModel,
    Transcript,
)
from leakboard.bench.methods import Attack, Knowledge, Silent, Source

DOWN = (Channel.LOGITS, Channel.ACTIVATIONS)
"""What the vendor returns; the first of these that was sent is read."""
UP = (Channel.TOKENS, Channel.REPRESENTATIONS)


class AnswerReading(Attack):
    """Read each token of an answer as the likeliest one under what the vendor returned for it.

    A vendor that returns logits knows which token the customer writes. From a vector below the output layer it computes
    the logits of the public layer; a layer that only the customer has was tuned from it. The last token of an answer is
    not sent back to the vendor, and not scored. Prompts are read by the attacks on texts, as every other split.
    """

    name: ClassVar[str] = "answer-reading"
    source: ClassVar[Source] = Source("Leakboard", "use of a tuned model over the wire")
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals={Goal.LABEL}, reads=DOWN, knows={Knows.BASE_WEIGHTS}
    )
    costly: ClassVar[bool] = True  # a suite names it, since it must record the answers, too
    labels: ClassVar[Literal["classes", "next tokens"]] = "next tokens"

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        base, guesses = knowledge.base, []
        assert base is not None
        channel = next((each for each in DOWN if _answered(seen, each)), None)
        if channel is None:
            raise Silent("no answers were recorded; write `record: {answers: true}` in the suite")
        for split in _answered(seen, channel):
            down = seen.collect(channel, split)
            asked = next(seen.collect(each, split) for each in UP if split in seen.splits(each))
            assert down.lengths is not None
            assert asked.lengths is not None
            vectors = torch.from_numpy(down.values.copy())
            if channel == Channel.ACTIVATIONS:
                layer = base.output_layer().cpu()
                vectors = torch.cat([part @ layer.T for part in torch.split(vectors, 512)])
            words, labels = vectors.argmax(1).numpy(), np.zeros(asked.lengths.sum(), np.int64)
            # The last request has all tokens but the last of an answer, each of which has its own label.
            ends, last = np.cumsum(asked.lengths), np.cumsum(down.lengths)
            for end, stop, number in zip(ends, last, down.lengths, strict=True):
                labels[end - number : end] = words[stop - number : stop]
            about = down.rows, labels, asked.lengths
            guesses.append(Guess(Goal.LABEL, channel, split, *about, view=split))
        return guesses


def _answered(seen: Transcript, channel: Channel) -> list[str]:
    return [split for split in seen.splits(channel) if split.endswith(ANSWERED)]
