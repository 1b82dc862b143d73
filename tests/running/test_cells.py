"""What one cell leaves behind: the messages that the vendor received, and their costs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import DEEP, fine_tuned, run, session_of

from leakboard.bench.backbones.costs import bottom_cost
from leakboard.bench.contracts.threat import Channel
from leakboard.defenses.frozen import Frozen
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP
from leakboard.defenses.sap_cti import SAPCTI


def test_a_cell_with_a_bottom_records_its_cost_and_its_bytes_per_epoch(tmp_path):
    (record,) = run(tmp_path, SAP(eta=None), attacks=(), **DEEP)
    session, _ = session_of(SAP(eta=None), **DEEP)
    tokens, n, d = len(session.train.ids.values), len(session.train), session.backbone.width
    scores = 4 * n * session.classes
    assert record.cost.epoch_bytes_up == (4 * tokens * d + 4 * n) / 2 + scores
    assert record.cost.epoch_bytes_down == scores
    settings = record.cell.train
    expected = bottom_cost(session.backbone, 1, session.train.lengths, settings.batch_size)
    assert record.cost.bottom == expected


SENT = Channel.REPRESENTATIONS


@pytest.mark.parametrize(
    ("defense", "up", "down"),
    [
        (SAP(), {SENT, Channel.LOGIT_GRADIENTS}, {Channel.LOGITS}),
        (SAPCTI(), {SENT, Channel.LOGIT_GRADIENTS}, {Channel.LOGITS}),
        (
            NoDefense(),
            {Channel.TOKENS, Channel.PARAMETERS, Channel.GRADIENTS},
            {Channel.ACTIVATIONS},
        ),
        (Frozen(), {Channel.TOKENS}, {Channel.ACTIVATIONS}),
    ],
)
def test_vendor_receives_nothing_but_the_declared_messages(defense, up, down):
    session, inputs, tuned = fine_tuned(defense)
    tuned.predict(inputs.tokens["dev"], "dev")
    messages = session.wire.transcript().messages
    assert {m.channel for m in messages if m.sender == "customer"} == up
    assert {m.channel for m in messages if m.sender == "vendor"} == down
    labels = session.labels.numpy()
    for message in messages:
        if message.channel != Channel.TOKENS:
            # Whole numbers would be ids or labels in disguise.
            assert message.values.dtype == np.float32
            flat = message.values.reshape(len(message.values), -1)
            assert not any(np.array_equal(c, labels[message.rows]) for c in flat.T[: len(labels)])
        elif message.split == "train":
            sent = session.train.take(torch.tensor(message.rows)).ids.values
            assert message.values.tolist() == sent.tolist()
