"""Gradients of a language model that went up as noise which cancels are put together by whoever saw it all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from leakboard.attacks.token_gradient import explained, implied
from leakboard.bench.attacking.token_mixture import read, steps_of
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.defenses.p3eft import mixing_weights, obfuscated

V, WIDTH, LONG, BATCHES = 300, 48, 60, 3


def split(vectors=2, sigma=5.0, servers=1, certain=1.0):
    """What P³EFT sends of one text in each of some batches, the public output layer, and the labels.

    `certain` scales the logits; above 1 the model predicts half of the labels.
    """
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    head = 0.15 * torch.randn(V, WIDTH)
    weights = torch.from_numpy(mixing_weights(2, WIDTH, sigma, rng)).float()
    messages, truth = [], []
    for step in range(BATCHES):
        h = certain * torch.randn(LONG, WIDTH) + 0.02 * torch.randn(2, LONG, WIDTH)
        labels = torch.randint(0, V, (LONG,))
        p = ((weights[:, None] * h).sum(0) @ head.T).softmax(1)
        if certain > 1:
            labels[::2] = p.argmax(1)[::2]
        g = (p @ head - head[labels]) / LONG
        place = {"rows": np.array([step]), "lengths": np.array([LONG]), "step": step}
        one = Message(
            *(Channel.ACTIVATIONS, "train", 0, "vendor", "vendor", 0),
            **place,
            values=h[0].numpy(),
        )
        messages += [one, replace(one, part=1, values=h[1].numpy())]
        for i in range(2):
            sent, _ = obfuscated(weights[i] * g, vectors, 1000.0, rng)
            messages += [
                replace(
                    one,
                    channel=Channel.GRADIENTS,
                    sender="customer",
                    recipient=f"server-{j % servers}",
                    part=i * vectors + j,
                    values=vector.numpy(),
                )
                for j, vector in enumerate(sent)
            ]
        truth.append(labels.numpy())
    return Transcript(tuple(messages)), head, np.concatenate(truth)


@pytest.mark.parametrize(
    ("vectors", "sigma", "certain"), [(2, 5.0, 1), (3, 5.0, 1), (2, 0.0, 1), (2, 5.0, 6)]
)
def test_one_server_takes_the_secret_mixture_apart_and_reads_the_text(vectors, sigma, certain):
    seen, head, truth = split(vectors, sigma, certain=certain)
    rows, lengths, labels = read(
        steps_of(seen), lambda g, h: explained(g, h, head), lambda h, y: implied(h, y, head)
    )
    assert rows.tolist() == list(range(BATCHES))
    assert lengths.tolist() == [LONG] * BATCHES
    assert (labels == truth).mean() == 1.0


def test_servers_apart_have_nothing_to_add_up():
    seen, _, _ = split(servers=2)
    assert steps_of(seen) == []
