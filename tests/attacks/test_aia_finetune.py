"""What attribute inference by fine-tuning is given to learn from."""

from __future__ import annotations

import numpy as np
import torch

from leakboard.attacks.aia_finetune import sequences
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.methods.knowledge import Knowledge


def heard(channel, *rounds, lengths=(1, 2)):
    return Transcript(
        tuple(
            Message(
                *(channel, "train", r, "customer", "vendor", 0),
                np.array([3, 8]),
                np.asarray(values),
                np.array(lengths),
            )
            for r, values in enumerate(rounds)
        )
    )


def test_vectors_of_an_example_are_averaged_over_rounds_and_not_over_tokens():
    one, other = np.eye(3, dtype=np.float32), 3 * np.ones((3, 3), np.float32)
    seen = heard(Channel.REPRESENTATIONS, one, other)
    rows, found = sequences(seen, Channel.REPRESENTATIONS, Knowledge(2, "cpu", base=object()))
    assert rows.tolist() == [3, 8]
    assert found.lengths.tolist() == [1, 2]
    torch.testing.assert_close(found.values, torch.from_numpy((one + other) / 2))


def test_token_ids_stand_for_their_initial_embeddings_and_are_read_once(tiny):
    ids = np.array([5, 9, 7])
    seen = heard(Channel.TOKENS, ids, ids)
    _, found = sequences(seen, Channel.TOKENS, Knowledge(2, "cpu", base=tiny))
    torch.testing.assert_close(found.values, tiny.embeddings[torch.from_numpy(ids)])
