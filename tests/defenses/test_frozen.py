"""The floor: a head alone, on what the public model says of each text."""

from __future__ import annotations

import torch
from cells import fine_tuned

from leakboard.bench.contracts.threat import Channel
from leakboard.defenses.frozen import Frozen

LEARNING = {"epochs": 150, "learning_rate": 0.3, "weight_decay": 0.0}


def test_head_learns_from_each_text_with_its_own_label_and_predicts_through_the_same_model():
    session, inputs, tuned = fine_tuned(Frozen(), limit=32, train=LEARNING)
    found = tuned.predict(inputs.tokens["train"], "train").argmax(1)
    assert (found == session.labels).float().mean() > 0.9


def test_head_alone_is_trained_and_nothing_that_depends_on_labels_is_sent():
    session, inputs, tuned = fine_tuned(Frozen(), limit=32, train={"epochs": 2})
    width = session.backbone.width
    assert session.trained_parameters == session.classes * (width + 1)
    seen = session.wire.transcript()
    assert seen.channels == {Channel.TOKENS, Channel.ACTIVATIONS}
    assert seen.rounds(Channel.ACTIVATIONS) == [0]  # once, before training
    other, _, _ = fine_tuned(Frozen(), limit=32, train={"epochs": 1})
    for one, two in zip(seen.messages, other.wire.transcript().messages, strict=True):
        assert (one.values == two.values).all()
    tuned.predict(inputs.tokens["dev"], "dev")
    assert session.wire.transcript().splits(Channel.ACTIVATIONS) == ["train", "dev"]
    network = session.network(adapted=False).eval()
    sent = session.wire.transcript().collect(Channel.ACTIVATIONS)
    rows = session.train.take(torch.from_numpy(sent.rows))
    words = rows.ids.with_values(network.embeddings(rows.ids.values))
    with torch.no_grad():
        public = network.features(words, rows.types)
    torch.testing.assert_close(torch.tensor(sent.values), public, atol=1e-5, rtol=1e-4)
