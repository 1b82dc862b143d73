"""SAP: what crosses the cut, at the embeddings and below them, and that it trains."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import DEEP, NOISY, TRAIN, fine_tuned, ids_of, load_tiny, run, session_of
from scipy.stats import kstest

from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.attacks.eia_optimise import Optimise
from leakboard.attacks.logit_gradient import LogitGradient
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.defending import splitting
from leakboard.defenses import sap
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP

SENT = Channel.REPRESENTATIONS
QUICK = (NearestNeighbour(), LogitGradient(), Optimise())


def sent_by(defense, split="train", **fields):
    """What a defense sends at a deep cut, the vectors without noise, and the tokens."""
    session, inputs = session_of(defense, **DEEP | fields)
    tuned = defense.fine_tune(session)
    tuned.predict(inputs.tokens["dev"], "dev")
    seen = session.wire.transcript()
    tokens = inputs.tokens[split]
    words = tokens.ids.with_values(session.backbone.embeddings[tokens.ids.values])
    plain = session.backbone.bottom(words, tokens.types, 1).values.numpy()
    return seen, plain, tokens


@pytest.mark.parametrize("split", ["train", "dev"])
def test_without_noise_the_hidden_states_of_the_public_model_are_sent_as_they_are(split):
    seen, plain, tokens = sent_by(SAP(eta=None), split)
    assert seen.rounds(SENT, split) == [0]
    sent = seen.collect(SENT, split)
    assert sent.lengths.tolist() == tokens.lengths.tolist()
    np.testing.assert_allclose(sent.values, plain, atol=1e-5)


def test_noise_at_depth_follows_its_law_on_every_position_and_nothing_is_replaced():
    seen, plain, tokens = sent_by(SAP(eta=40.0), limit=64)
    noise = seen.collect(SENT).values - plain
    width = plain.shape[1]
    for which in (tokens.special.numpy(), ~tokens.special.numpy()):
        radius = np.linalg.norm(noise[which], axis=1)
        assert kstest(radius, "gamma", args=(width, 0, 1 / 40.0)).pvalue > 1e-3
    table = load_tiny("tiny-bert").embeddings.numpy()
    assert not any((row == table).all(1).any() for row in seen.collect(SENT).values[:20])


def test_frozen_bottom_sends_once_and_a_trainable_one_afresh_with_the_gradient_returned():
    frozen, plain, _ = sent_by(SAP(eta=40.0))
    assert frozen.rounds(SENT) == [0]
    assert not frozen.splits(Channel.CUT_GRADIENTS)
    seen, _, _ = sent_by(SAP(eta=40.0, bottom="trainable"))
    assert seen.rounds(SENT) == seen.rounds(Channel.CUT_GRADIENTS) == [0, 1]
    first, second = (seen.collect(SENT, round=r).values for r in (0, 1))
    expected = plain.shape[1] / 40.0
    assert np.linalg.norm(first - second, axis=1).mean() > expected
    gradient = seen.collect(Channel.CUT_GRADIENTS)
    assert gradient.values.shape == first.shape
    assert (np.linalg.norm(gradient.values, axis=1) > 0).all()


def test_trainable_bottom_moves_word_embeddings_and_lora_below_the_cut():
    moved = []

    class Watched(SAP):
        def _fit_with_bottom(self, session, network, bottom):
            before = {k: v.clone() for k, v in network.named_parameters()}
            super()._fit_with_bottom(session, network, bottom)
            after = dict(network.named_parameters())
            moved.extend(k for k in after if not torch.equal(before[k], after[k]))

    session, _ = session_of(Watched(eta=None, bottom="trainable"), **DEEP)
    Watched(eta=None, bottom="trainable").fine_tune(session)
    assert "encoder.embeddings.word_embeddings.weight" in moved
    assert any("layer.0." in k and "lora" in k for k in moved)
    assert any("layer.1." in k and "lora" in k for k in moved)
    assert all("lora" in k or "word_embeddings" in k or "head" in k for k in moved)


def test_nearest_neighbour_says_why_it_cannot_read_representations_at_depth(tmp_path):
    (record,) = run(tmp_path, SAP(), attacks=QUICK[:1], **DEEP)
    (leak,) = record.leaks
    assert leak.status == "skipped"
    assert leak.reason == "at cut 1 eia-nn reads only tokens, and sap sends representations"


SENT = Channel.REPRESENTATIONS


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


def test_sap_without_noise_trains_as_plain_fine_tuning_does():
    curves, scores = [], []
    for defense in (SAP(eta=None), NoDefense()):
        session, inputs = session_of(defense, limit=96, train={"learning_rate": 1e-2})
        tuned = defense.fine_tune(session)
        curves.append(session.loss)
        scores.append(tuned.predict(inputs.tokens["dev"], "dev"))
    assert curves[0] == pytest.approx(curves[1], rel=1e-4)
    torch.testing.assert_close(*scores, rtol=1e-3, atol=1e-4)


def trained_bottom(**fields):
    """The word embeddings of a trainable bottom before and after training, and which ids occurred."""
    kept = []

    class Watched(SAP):
        def _fit_with_bottom(self, session, network, bottom):
            before = network.embeddings.weight.detach().clone()
            super()._fit_with_bottom(session, network, bottom)
            kept.extend((before, network.embeddings.weight.detach()))

    defense = Watched(eta=None, bottom="trainable", bottom_learning_rate=0.05)
    session, _, _ = fine_tuned(defense, limit=16, **fields)
    occurs = torch.zeros(len(kept[0]), dtype=torch.bool)
    occurs[session.train.ids.values] = True
    return *kept, occurs


def test_word_embeddings_move_at_their_own_rate_and_those_of_tokens_that_never_occur_not_at_all():
    before, after, occurs = trained_bottom(train={"weight_decay": 0.5, "learning_rate": 1e-6})
    assert 0 < occurs.sum() < len(occurs) / 2
    assert torch.equal(after[~occurs], before[~occurs])
    # The others move at the rate of the bottom, not at that of the top.
    assert (after - before)[occurs].abs().amax(1).min() > 0.01


@pytest.mark.parametrize("bottom", ["trainable", "frozen"])
def test_tokens_are_replaced_by_neighbours_in_the_embeddings_as_they_are_now(bottom, monkeypatch):
    """The nearest row to a row is itself in the table that it comes from, and in no other."""
    right, original = [], sap.privatise_tokens

    def noted(ids, rows, neighbours, *rest):
        right.append(torch.from_numpy(neighbours.nearest(rows)).eq(torch.arange(len(rows))).all())
        return original(ids, rows, neighbours, *rest)

    monkeypatch.setattr(sap, "privatise_tokens", noted)
    defense = SAP(eta=NOISY, bottom=bottom, bottom_learning_rate=1.0)
    _, inputs, tuned = fine_tuned(defense, limit=16)
    tuned.predict(inputs.tokens["dev"], "dev")
    assert len(right) == (3 if bottom == "trainable" else 2)
    assert all(right)


def test_frozen_bottom_keeps_what_was_sent_of_each_text_at_depth_too(monkeypatch):
    kept, sent_once = [], splitting.send_once

    def noted(*given):
        kept.append(sent_once(*given))
        return kept[-1]

    monkeypatch.setattr(splitting, "send_once", noted)
    seen, _, tokens = sent_by(SAP(eta=40.0))
    (received,), sent = kept, seen.collect(SENT)
    assert received.lengths.tolist() == tokens.lengths.tolist() == sent.lengths.tolist()
    assert np.array_equal(received.values.numpy(), sent.values)
