"""What each defense sends and each attack finds, on a tiny model."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from cells import TRAIN, leak_of, run, session_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attacks.eia_nn import NearestNeighbour
from bench.neighbours import Neighbours
from bench.types import Channel, Knowledge
from defenses.blackout import Blackout
from defenses.frozen import Frozen
from defenses.none import NoDefense
from defenses.sap import SAP
from defenses.sap_cti import SAPCTI, contributing

SENT = Channel.REPRESENTATIONS
NOISY = 180.0
"""An η at which the tiny model loses part of its tokens and keeps part."""


def ids_of(session, round=0, split="train"):
    """Token ids whose initial embeddings were sent."""
    sent = session.wire.transcript().collect(SENT, split, round)
    return torch.from_numpy(Neighbours(session.backbone.embeddings).nearest(sent.values))


def fine_tuned(defense, **fields):
    session, inputs = session_of(defense, **fields)
    return session, inputs, defense.fine_tune(session)


# SAP-CTI: contributing tokens


def chosen(counts, share):
    return np.flatnonzero(contributing(np.array(counts), share)).tolist()


def test_contributing_tokens_of_two_classes_by_hand():
    # Tokens a b c d e; e never occurs, so smoothing gives nothing to it: +1 on four tokens.
    # Class 0: a 5, b 1, c 2, d 0 → 6 2 3 1 of 12.  Class 1: a 0, b 1, c 2, d 1 → 1 2 3 2 of 8.
    # UI(m,0) = ln p(m|0)/p(m|1): a ln(6/12 · 8/1) = ln 4; b ln(2/12 · 8/2) = ln 2/3; c ln(3/12 · 8/3)
    # = ln 2/3; d ln(1/12 · 8/2) = ln 1/3. UI(m,1) is the negative: d ln 3, b and c ln 3/2, a −ln 4.
    # Order 0: a b c d (b and c tie, the smaller id first). Order 1: d b c a.
    # k = 1 takes a and d: 5 + 1 of 12 occurrences. k = 2 adds b: 8. k = 3 adds c: 12.
    counts = [[5, 1, 2, 0, 0], [0, 1, 2, 1, 0]]
    assert chosen(counts, 5 / 12) == []
    assert chosen(counts, 6 / 12) == [0, 3]
    assert chosen(counts, 7 / 12) == [0, 3]
    assert chosen(counts, 8 / 12) == [0, 1, 3]
    assert chosen(counts, 11 / 12) == [0, 1, 3]
    assert chosen(counts, 1) == [0, 1, 2, 3]


def test_contributing_tokens_of_three_classes_by_hand():
    # Smoothed, each row sums to 16: 8 4 2 2 | 2 8 2 4 | 2 2 2 10. With equal sums UI(m,c) is
    # ln of count², over the product of the two others:
    # class 0: 64/4, 16/16, 4/4, 4/40 → token 0;  class 1: 4/16, 64/8, 4/4, 16/20 → token 1;
    # class 2: 4/16, 4/32, 4/4, 100/8 → token 3.
    # k = 1 takes tokens 0, 1 and 3, which are 33 of 36 occurrences; k = 2 takes them all.
    counts = [[7, 3, 1, 1], [1, 7, 1, 3], [1, 1, 1, 9]]
    assert chosen(counts, 32 / 36) == []
    assert chosen(counts, 33 / 36) == [0, 1, 3]
    assert chosen(counts, 35 / 36) == [0, 1, 3]
    assert chosen(counts, 1) == [0, 1, 2, 3]


counts_of_some_tokens = arrays(
    np.int64, st.tuples(st.integers(2, 4), st.integers(1, 12)), elements=st.integers(0, 9)
).filter(lambda counts: counts.sum() > 0)


@given(counts_of_some_tokens, st.floats(0, 1))
def test_share_is_never_exceeded_and_k_is_the_largest_possible(counts, share):
    # A plain restatement: the smallest k over the limit, found by trying all of them.
    used = np.flatnonzero(counts.sum(0))
    smooth = counts[:, used] + 1.0
    p = smooth / smooth.sum(1, keepdims=True)
    importance = [
        [sum(np.log(p[c, m] / p[other, m]) for other in range(len(p)) if other != c)
         for m in range(len(used))]
        for c in range(len(p))
    ]  # fmt: skip
    order = np.argsort(-np.round(importance, 9), axis=1, kind="stable")
    best = set()
    for k in range(1, len(used) + 1):
        tokens = {int(used[m]) for m in order[:, :k].ravel()}
        if sum(int(counts[:, m].sum()) for m in tokens) <= Fraction(share) * int(counts.sum()):
            best = tokens
    got = set(chosen(counts, share))
    taken = sum(int(counts[:, m].sum()) for m in got)
    assert taken <= Fraction(share) * int(counts.sum())
    assert taken == sum(int(counts[:, m].sum()) for m in best)


@given(counts_of_some_tokens)
def test_share_zero_takes_nothing_and_share_one_all_that_occurs(counts):
    assert chosen(counts, 0) == []
    assert chosen(counts, 1) == np.flatnonzero(counts.sum(0)).tolist()


def test_contributing_tokens_are_sent_as_they_are_and_others_are_not():
    defense = SAPCTI(eta=20, share=0.2)
    session, inputs, tuned = fine_tuned(defense)
    clear = defense.in_clear(session)
    for split in ("train", "dev"):
        tokens = inputs.tokens[split]
        tuned.predict(tokens, split) if split == "dev" else None
        sent, ids = ids_of(session, split=split), tokens.ids.values
        kept = clear[ids] & ~tokens.special
        assert 0.05 < kept.float().mean() < 0.3
        assert (sent[kept] == ids[kept]).all()
        assert (sent == ids)[~kept & ~tokens.special].float().mean() < 0.1


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
        (NoDefense(), {Channel.TOKENS, Channel.GRADIENTS}, {Channel.ACTIVATIONS}),
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
    sap, none, frozen = run(tmp_path, SAP(eta=50), NoDefense(), Frozen())
    assert leak_of(sap, "logit-gradient", goal="label").success.value >= 0.99
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
