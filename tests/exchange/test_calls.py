"""Messages of training, put together to what belongs to one batch."""

from __future__ import annotations

import numpy as np
from label_attacks import sent

from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Transcript
from leakboard.bench.exchange.calls import batches


def test_vectors_of_each_adapter_and_server_are_a_batch_of_their_own():
    def message(channel, part, number, recipient="vendor"):
        x = np.full((2, 3), number)
        return sent(x, channel=channel, part=part, recipient=recipient, rows=np.array([4, 9]))

    seen = Transcript(
        tuple(
            message(*given)
            for given in (
                (Channel.ACTIVATIONS, 0, 70),
                (Channel.ACTIVATIONS, 1, 71),
                (Channel.GRADIENTS, 0, 10, "one"),
                (Channel.GRADIENTS, 1, 11, "two"),
                (Channel.GRADIENTS, 2, 12, "one"),
                (Channel.GRADIENTS, 3, 13, "two"),
            )
        )
    )
    found = batches(seen, 0)
    told = {
        place: (one.parts, one.vectors[:, 0, 0].tolist(), one.activations[0, 0])
        for place, (one,) in found.items()
    }
    assert told == {
        ("one", 0): ([0], [10], 70),
        ("two", 0): ([1], [11], 70),
        ("one", 1): ([2], [12], 71),
        ("two", 1): ([3], [13], 71),
    }
    assert all(one.rows.tolist() == [4, 9] for (one,) in found.values())
