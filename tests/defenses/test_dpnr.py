"""DPNR: one noisy vector per text is all that is sent of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from cells import TRAIN, fine_tuned, run, session_of
from pydantic import ValidationError
from scipy.stats import kstest

from leakboard.attacks.logit_gradient import LogitGradient
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.defending.pooled_noise import rescale_rows
from leakboard.bench.methods import Conditions
from leakboard.defenses import dpnr
from leakboard.defenses.dpnr import DPNR

SENT = Channel.ACTIVATIONS


def clean(session, split, inputs):
    return rescale_rows(session.backbone.pooled(inputs.tokens[split])).numpy()


@pytest.mark.parametrize("split", ["train", "dev"])
def test_without_noise_the_scaled_mean_of_the_public_encoder_is_sent_once(split):
    session, inputs, tuned = fine_tuned(DPNR(epsilon=None))
    tuned.predict(inputs.tokens["dev"], "dev")
    seen = session.wire.transcript()
    assert seen.rounds(SENT, split) == [0]
    sent = seen.collect(SENT, split)
    assert sent.lengths is None
    np.testing.assert_allclose(sent.values, clean(session, split, inputs), atol=1e-4)
    assert session.claim is None


def test_noise_of_each_number_follows_its_law_in_training_and_at_inference():
    session, inputs, tuned = fine_tuned(DPNR(epsilon=0.5))
    tuned.predict(inputs.tokens["dev"], "dev")
    for split in ("train", "dev"):
        noise = session.wire.transcript().collect(SENT, split).values - clean(
            session, split, inputs
        )
        assert kstest(noise.flatten(), "laplace", args=(0, 2.0)).pvalue > 1e-3
        assert np.ptp(noise, axis=1).min() > 1


def test_as_released_one_number_shifts_a_whole_vector_and_scaling_removes_it():
    session, inputs, _ = fine_tuned(DPNR(epsilon=0.5, as_released=True))
    sent = session.wire.transcript().collect(SENT).values
    shift = sent - clean(session, "train", inputs)
    assert np.ptp(shift, axis=1).max() < 1e-4
    assert np.std(shift[:, 0]) > 1
    again = rescale_rows(torch.tensor(sent)).numpy()
    np.testing.assert_allclose(again, clean(session, "train", inputs), atol=1e-4)
    assert "epsilon_per_vector" not in session.claim.parameters


def test_dropped_words_never_reach_the_encoder(monkeypatch):
    seen = []

    def noted(network, tokens):
        seen.append(tokens)
        return original(network, tokens)

    original = dpnr.encoded
    monkeypatch.setattr(dpnr, "encoded", noted)
    session, inputs, tuned = fine_tuned(DPNR(epsilon=None, dropout=0.5))
    trained = sum(len(tokens.ids.values) for tokens in seen)
    words = int((~session.train.special).sum())
    special = int(session.train.special.sum())
    assert abs((trained - special) / words - 0.5) < 0.1
    seen.clear()
    tuned.predict(inputs.tokens["dev"], "dev")
    assert sum(len(tokens.ids.values) for tokens in seen) < 0.8 * len(inputs.tokens["dev"].special)


def test_a_trained_encoder_sends_afresh_in_each_epoch_and_gets_the_gradient_back():
    session, _inputs, _ = fine_tuned(DPNR(epsilon=1.0, encoder="trained"))
    seen = session.wire.transcript()
    assert seen.rounds(SENT) == seen.rounds(Channel.GRADIENTS) == [0, 1]
    first, second = (seen.collect(SENT, round=r).values for r in (0, 1))
    assert np.abs(first - second).mean() > 0.5
    (sender,) = {m.sender for m in seen.messages if m.channel == Channel.GRADIENTS}
    assert sender == "vendor"
    assert "2 times" in session.claim.covers


def test_who_asks_a_trained_encoder_is_answered_as_training_left_it_and_a_frozen_one_needs_no_asking():
    rng = np.random.default_rng(0)
    session, inputs, tuned = fine_tuned(
        DPNR(epsilon=None, encoder="trained"), train=TRAIN | {"learning_rate": 0.05}
    )
    tuned.predict(inputs.tokens["dev"], "dev")
    own = session.wire.transcript().collect(SENT, "dev").values
    answers = tuned.sends(inputs.tokens["dev"], rng).values.numpy()
    np.testing.assert_allclose(answers, own, atol=1e-4)
    assert np.abs(answers - clean(session, "dev", inputs)).max() > 1e-2
    _, inputs, tuned = fine_tuned(DPNR(epsilon=None))
    assert tuned.sends(inputs.tokens["dev"], rng) is None


def test_a_trained_encoder_answers_with_noise_of_the_asker():
    _, inputs, tuned = fine_tuned(DPNR(epsilon=0.5, encoder="trained"))
    dev = inputs.tokens["dev"]
    first, same, other = (tuned.sends(dev, np.random.default_rng(s)).values for s in (0, 0, 1))
    assert torch.equal(first, same)
    noise = (first - other).numpy().flatten() / np.sqrt(2)
    assert abs(noise.std() - np.sqrt(2) / 0.5) < 0.2


def test_a_trained_encoder_learns_in_its_blocks_and_a_frozen_one_in_the_head_alone():
    sizes = {}
    for encoder in ("frozen", "trained"):
        session, _inputs, _ = fine_tuned(DPNR(epsilon=None, encoder=encoder))
        sizes[encoder] = session.trained_parameters
        width = session.backbone.width
    assert sizes["frozen"] == 2 * width + 2 < sizes["trained"]


def test_the_claim_names_a_dimension_and_the_vector():
    session, _, _ = fine_tuned(DPNR(epsilon=1.0, dropout=0.25))
    claim, width = session.claim, session.backbone.width
    one = math.log(0.75 * math.e + 0.25)
    assert claim.parameters["epsilon_per_dimension"] == pytest.approx(one)
    assert claim.parameters["epsilon_per_vector"] == pytest.approx(width + math.log(0.75), rel=1e-6)
    assert "differ in one word" in claim.covers


def test_labels_are_read_from_what_trains_it_and_the_record_has_the_claim(tmp_path):
    (record,) = run(tmp_path, DPNR(epsilon=1.0), attacks=[LogitGradient()])
    assert record.leaks[0].success.value == 1.0
    assert record.claim.parameters["epsilon_per_dimension"] == 1.0
    assert record.cost.bottom.parameters > 1000  # the customer runs the whole encoder


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"dropout": 1}, "dropout"),
        ({"dropout": -0.1}, "dropout"),
        ({"as_released": True, "dropout": 0.1}, "dropout"),
    ],
)
def test_bad_values_are_refused_by_name(given, name):
    with pytest.raises(ValidationError, match=name):
        DPNR(**given)


def test_a_cut_is_refused():
    assert "whole encoder" in DPNR().skip(Conditions(cut=1))
    assert DPNR().skip(Conditions(cut=0)) is None


def test_it_learns_from_what_arrives():
    train = TRAIN | {"epochs": 30, "learning_rate": 0.05}
    session, _ = session_of(DPNR(epsilon=None), limit=16, train=train)
    DPNR(epsilon=None).fine_tune(session)
    assert session.loss[-1] < 0.95 * max(session.loss)
