"""What each defense sends and each attack finds, on a tiny model."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import TRAIN, fine_tuned, ids_of, leak_of, run

from attacks.eia_nn import NearestNeighbour
from bench.contracts.channels import Channel
from bench.methods.knowledge import Knowledge
from defenses import sap
from defenses.blackout import Blackout
from defenses.frozen import Frozen
from defenses.none import NoDefense
from defenses.sap import SAP
from defenses.sap_cti import SAPCTI

SENT = Channel.REPRESENTATIONS
NOISY = 180.0
"""An η at which the tiny model loses part of its tokens and keeps part."""


# SAP: what crosses the cut


@pytest.mark.parametrize("bottom", ["frozen", "trainable"])
def test_special_tokens_are_never_changed(bottom):
    session, inputs, tuned = fine_tuned(SAP(eta=1.0, bottom=bottom))
    tuned.predict(inputs.tokens["dev"], "dev")
    for split in ("train", "dev"):
        tokens = inputs.tokens[split]
        same = ids_of(session, split=split) == tokens.ids.values
        assert same[tokens.special].all()
        assert same[~tokens.special].float().mean() < 0.1


def test_frozen_bottom_sends_rows_of_the_embeddings_once_and_reuses_them():
    session, _inputs, _ = fine_tuned(SAP(eta=NOISY), train={"epochs": 3})
    seen = session.wire.transcript()
    assert [m.round for m in seen.messages if m.channel == SENT] == [0]
    assert seen.rounds(Channel.LOGIT_GRADIENTS) == [0, 1, 2]
    values = seen.collect(SENT).values
    table = session.backbone.embeddings.numpy()
    assert (values == table[ids_of(session)]).all()
    assert not seen.splits(Channel.CUT_GRADIENTS)


def test_trainable_bottom_draws_fresh_noise_in_each_epoch():
    session, inputs, _ = fine_tuned(
        SAP(eta=NOISY, bottom="trainable", bottom_learning_rate=1e-9), train={"epochs": 3}
    )
    seen = session.wire.transcript()
    assert seen.rounds(SENT) == seen.rounds(Channel.CUT_GRADIENTS) == [0, 1, 2]
    real = ~inputs.tokens["train"].special
    a, b, c = (ids_of(session, r)[real] for r in range(3))
    for one, other in ((a, b), (b, c), (a, c)):
        assert (one != other).float().mean() > 0.2


def test_noise_comes_from_one_stream_that_is_never_rewound(monkeypatch):
    drawn, original = [], sap.privatise_tokens

    def privatise(*args):
        drawn.append((args[-1], str(args[-1].bit_generator.state)))
        return original(*args)

    monkeypatch.setattr(sap, "privatise_tokens", privatise)
    session, inputs, tuned = fine_tuned(SAP(eta=NOISY, bottom="trainable"))
    tuned.predict(inputs.tokens["dev"], "dev")
    assert len({state for _, state in drawn}) == len(drawn) == 3 * TRAIN["epochs"] + 1
    assert {id(rng) for rng, _ in drawn} == {id(session.noise)}


def test_inference_is_privatised_too():
    session, inputs, tuned = fine_tuned(SAP(eta=NOISY))
    dev = inputs.tokens["dev"]
    tuned.predict(dev, "dev")
    same = (ids_of(session, split="dev") == dev.ids.values)[~dev.special].float().mean()
    assert 0.1 < same < 0.9


def test_trainable_bottom_moves_the_embeddings_and_the_vendor_returns_the_gradient_at_the_cut():
    defense = SAP(eta=None, bottom="trainable", bottom_learning_rate=0.01)
    session, _inputs, _ = fine_tuned(defense, train={"epochs": 2})
    seen = session.wire.transcript()
    first, second = (seen.collect(SENT, round=r).values for r in (0, 1))
    assert np.abs(second - first).max() > 1e-3
    gradient = seen.collect(Channel.CUT_GRADIENTS)
    assert gradient.values.shape == first.shape
    assert np.abs(gradient.values).sum() > 0
    assert {m.sender for m in seen.messages if m.channel == Channel.CUT_GRADIENTS} == {"vendor"}


@pytest.mark.parametrize("bottom", ["frozen", "trainable"])
def test_bytes_of_sap_are_the_sizes_of_what_it_must_send(bottom):
    epochs = TRAIN["epochs"]
    session, inputs, tuned = fine_tuned(SAP(eta=NOISY, bottom=bottom), record={"examples": 3})
    n, d = len(session.train), session.backbone.width
    tokens = len(session.train.ids.values)
    vectors, logits = 4 * tokens * d + 4 * n, 4 * n * 2
    rounds = epochs if bottom == "trainable" else 1
    assert session.wire.bytes_up == rounds * vectors + epochs * logits
    returned = epochs * vectors if bottom == "trainable" else 0
    assert session.wire.bytes_down == epochs * logits + returned
    dev = inputs.tokens["dev"]
    up, down = session.wire.bytes_up, session.wire.bytes_down
    tuned.predict(dev, "dev")
    assert session.wire.bytes_up - up == 4 * len(dev.ids.values) * d + 4 * len(dev)
    assert session.wire.bytes_down - down == 4 * len(dev) * 2


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


# Attacks


def test_logit_gradient_reads_every_label_under_sap_and_has_no_channel_elsewhere(tmp_path):
    split, none, frozen = run(tmp_path, SAP(eta=50), NoDefense(), Frozen())
    assert leak_of(split, "logit-gradient", goal="label").success.value >= 0.99
    for record in (none, frozen):
        leak = leak_of(record, "logit-gradient", view="", goal="label")
        assert leak.status == "skipped"
        assert "does not send logit-gradients" in leak.reason


def test_nearest_neighbour_reads_everything_without_noise_and_less_the_more_noise(tmp_path):
    etas = (None, 300, 180, 60)
    records = run(tmp_path, *(SAP(eta=eta) for eta in etas))
    for view in ("train", "dev"):
        privacy = [leak_of(r, "eia-nn", view).ep.value for r in records]
        assert privacy[0] <= 0.01
        assert privacy == sorted(privacy)
        assert privacy[-1] > 0.9
    assert [leak_of(r, "eia-nn").certificate for r in records] == [True, *[False] * 3]


def test_union_over_rounds_finds_more_than_any_single_round():
    session, inputs, _ = fine_tuned(SAP(eta=NOISY, bottom="trainable"), train={"epochs": 3})
    knowledge = Knowledge(2, "cpu", base=session.backbone)
    seen = session.wire.transcript()
    (guess,) = NearestNeighbour().guess(seen, knowledge, np.random.default_rng(0))
    assert guess.values.shape == (len(session.train.ids.values), 3)
    tokens = inputs.tokens["train"]
    hit = (guess.values == tokens.ids.values.numpy()[:, None])[~tokens.special.numpy()]
    assert hit.any(1).mean() > 1.1 * hit.mean(0).max()
    for r in range(3):
        assert guess.values[:, r].tolist() == ids_of(session, r).tolist()


def test_every_attack_fails_on_blackout(tmp_path):
    (record,) = run(tmp_path, Blackout(), limit=300)
    found = [leak for leak in record.leaks if leak.success]
    assert {leak.attack.name for leak in found} == {"eia-nn", "logit-gradient", "prior"}
    for leak in found:
        assert leak.success.low <= leak.success.chance, leak.attack.name


def test_prior_reaches_the_chance_level_where_public_frequencies_are_those_of_the_data(tmp_path):
    # All of `reviews`: the most frequent token is the same in public and private text.
    (record,) = run(tmp_path, Blackout(), limit=2000, record={"examples": 1000})
    for view in ("train", "dev"):
        success = leak_of(record, "prior", view).success
        assert success.value == pytest.approx(success.chance, abs=1e-12)
