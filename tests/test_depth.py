"""Cuts below the embeddings: what SAP sends there, what inversion finds, and what it costs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import leak_of, load_tiny, run, session_of
from scipy.stats import kstest

from attacks.eia_nn import NearestNeighbour
from attacks.eia_optimise import Optimise
from attacks.logit_gradient import LogitGradient
from bench.backbones.costs import bottom_cost
from bench.contracts.channels import Channel
from bench.contracts.record import Cost
from bench.contracts.transcript import Message, Transcript
from bench.methods.knowledge import Knowledge
from defenses.blackout import Blackout
from defenses.frozen import Frozen
from defenses.none import NoDefense
from defenses.sap import SAP
from defenses.sap_cti import SAPCTI

SENT = Channel.REPRESENTATIONS
DEEP = {"cut": 1, "limit": 24, "train": {"epochs": 2}}
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


# SAP


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


def test_contributing_tokens_at_depth_are_a_skipped_record_with_its_reason(tmp_path):
    (record,) = run(tmp_path, SAPCTI(), **DEEP)
    assert record.status == "skipped"
    assert "embedding cut only" in record.reason


@pytest.mark.parametrize("defense", [NoDefense(), Frozen()])
def test_defenses_that_send_tokens_do_not_depend_on_the_cut(tmp_path, defense):
    records = run(tmp_path, defense, **DEEP | {"cut": (0, 1)})
    kept = [r.outcome() for r in records]
    for outcome in kept:
        del outcome["key"], outcome["cell"], outcome["leaks"]
    assert kept[0] == kept[1]
    for record in records:
        assert leak_of(record, "eia-nn").success.value == 1
        assert record.cost.bottom is None


# Attacks


def test_nearest_neighbour_says_why_it_cannot_read_representations_at_depth(tmp_path):
    (record,) = run(tmp_path, SAP(), attacks=QUICK[:1], **DEEP)
    (leak,) = record.leaks
    assert leak.status == "skipped"
    assert leak.reason == "at cut 1 eia-nn reads tokens only, and sap sends representations"


def test_optimisation_reads_clear_representations_and_little_under_much_noise(tmp_path):
    clear, noisy = run(tmp_path, SAP(eta=None), SAP(eta=1.0), attacks=QUICK, **DEEP)
    for view in ("train", "dev"):
        found = leak_of(clear, "eia-optimise", view)
        assert found.success.value > 0.99
        assert found.certificate
        assert leak_of(noisy, "eia-optimise", view).success.value < 0.2


def test_optimisation_refuses_the_embedding_cut_and_finds_nothing_in_blackout(tmp_path):
    shallow, deep = run(
        tmp_path, Blackout(), attacks=[Optimise(steps=5)], **DEEP | {"cut": (0, 1), "limit": 200}
    )
    assert "embedding cut" in shallow.leaks[0].reason
    for leak in deep.leaks:
        assert leak.success.low <= leak.success.chance


def heard(vectors, lengths, rounds=1):
    """A transcript in which the same vectors were sent in each round."""
    n = np.arange(len(lengths))
    return Transcript(
        tuple(
            Message(SENT, "train", r, "customer", "vendor", 0, n, vectors, lengths)
            for r in range(rounds)
        )
    )


@pytest.mark.parametrize("relaxation", ["embeddings", "logits"])
def test_both_relaxations_find_all_tokens_of_unequal_sentences_whatever_the_batch(relaxation):
    base = load_tiny("tiny-bert")
    tokens = base.encode(
        ["bad", "the food was very good and the staff friendly", "not good"], None, 32
    )
    words = tokens.ids.with_values(base.embeddings[tokens.ids.values])
    vectors = base.bottom(words, tokens.types, 1).values.numpy()
    knowledge = Knowledge(2, "cpu", cut=1, base=base)
    for size in (1, 3):
        attack = Optimise(relaxation=relaxation, steps=150, batch_size=size)
        (guess,) = attack.guess(
            heard(vectors, tokens.lengths.numpy()), knowledge, np.random.default_rng(0)
        )
        assert guess.values[:, 0].tolist() == tokens.ids.values.tolist()


def test_each_round_gives_a_candidate():
    base = load_tiny("tiny-bert")
    tokens = base.encode(["not good"], None, 32)
    words = tokens.ids.with_values(base.embeddings[tokens.ids.values])
    seen = heard(base.bottom(words, tokens.types, 1).values.numpy(), tokens.lengths.numpy(), 3)
    knowledge = Knowledge(2, "cpu", cut=1, base=base)
    (guess,) = Optimise(steps=5).guess(seen, knowledge, np.random.default_rng(0))
    assert guess.values.shape == (len(tokens.ids.values), 3)


def test_minilm_gives_up_every_token_behind_its_first_block(minilm):
    tokens = minilm.encode(["it 's a charming and often affecting journey .", "awful ."], None, 32)
    words = tokens.ids.with_values(minilm.embeddings[tokens.ids.values])
    vectors = minilm.bottom(words, tokens.types, 1).values.numpy()
    (guess,) = Optimise().guess(
        heard(vectors, tokens.lengths.numpy()),
        Knowledge(2, "cpu", cut=1, base=minilm),
        np.random.default_rng(0),
    )
    assert (guess.values[:, 0] == tokens.ids.values.numpy())[~tokens.special.numpy()].all()


# Cost


def test_cost_of_the_bottom_is_that_of_its_blocks(tmp_path):
    base = load_tiny("tiny-bert")
    lengths = torch.tensor([5, 9])
    shallow, deep = (bottom_cost(base, cut, lengths, 10) for cut in (0, 1))
    d, n, model = base.width, 7, base.model
    assert (shallow.parameters, shallow.flops) == (base.embeddings.numel(), 0)
    parts = (model.embeddings, model.encoder.layer[0])
    assert deep.parameters == sum(p.numel() for part in parts for p in part.parameters())
    # Four projections and two of twice the width, then scores and sums over n positions.
    assert deep.flops == 2 * n * d * d * (4 + 2 + 2) + 4 * n * n * d
    assert deep.tokens == n
    assert deep.megabytes == pytest.approx(4e-6 * (deep.parameters + 10 * n * d))
    assert not any(p.requires_grad for p in model.parameters()), "the public model must stay frozen"


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


def test_a_record_without_the_cost_of_a_bottom_is_still_read():
    older = {
        "bytes_up": 1,
        "bytes_down": 1,
        "trained_parameters": 1,
        "train_seconds": 1.0,
        "attack_seconds": 1.0,
        "total_seconds": 1.0,
        "peak_megabytes": 1.0,
    }
    assert Cost(**older).bottom is None
