"""CAPE: features of noisy vectors are sent, and an adversary at the customer's turns them from an attribute."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import TRAIN, fine_tuned, leak_of, run, session_of
from pydantic import ValidationError
from records import record
from scipy.stats import kstest

from leakboard.attacks.pooled_inversion import PooledInversion
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.defending.pooled_noise import rescale_rows
from leakboard.bench.methods.method import Conditions
from leakboard.bench.running.reproduction import methods_of_record
from leakboard.defenses.cape import CAPE, HIDDEN, Customer, padded_mean

SENT = Channel.ACTIVATIONS


def customer_of(**given):
    session, inputs = session_of(CAPE(**given))
    return Customer(CAPE(**given), session), session, inputs


def test_features_are_sent_afresh_in_each_epoch_and_their_gradient_comes_back():
    session, inputs, tuned = fine_tuned(CAPE(epsilon=1.0))
    tuned.predict(inputs.tokens["dev"], "dev")
    seen = session.wire.transcript()
    assert seen.rounds(SENT) == seen.rounds(Channel.GRADIENTS) == [0, 1]
    first, second = (seen.collect(SENT, round=r).values for r in (0, 1))
    assert first.shape[1] == HIDDEN
    assert (first >= 0).all()
    assert (first != second).any(1).all()
    assert seen.collect(SENT, "dev").values.shape[1] == HIDDEN


def test_noise_is_in_every_dimension_and_drawn_at_every_call():
    customer, session, _ = customer_of(epsilon=0.5)
    drawn = [customer._noisy(torch.zeros(20, 16), session.noise).numpy() for _ in range(2)]
    assert kstest(np.concatenate(drawn).flatten(), "laplace", args=(0, 2.0)).pvalue > 1e-3
    assert (drawn[0] != drawn[1]).all()
    assert (drawn[0][0] != drawn[0][1]).all()


def test_as_released_one_vector_of_noise_serves_the_whole_run():
    customer, session, _ = customer_of(epsilon=0.5, as_released=True)
    drawn = [customer._noisy(torch.zeros(20, 16), session.noise).numpy() for _ in range(2)]
    assert (drawn[0] == drawn[1]).all()
    assert (drawn[0] == drawn[0][0]).all()
    assert np.std(drawn[0][0]) > 0.5
    claim = CAPE(epsilon=0.5, as_released=True).guarantee(16)
    assert "epsilon_per_vector" not in claim.parameters
    assert "difference" in claim.covers


def test_the_mean_is_over_real_tokens_and_as_released_over_padding_too():
    customer, session, inputs = customer_of()
    tokens = inputs.tokens["dev"].take(torch.arange(5))
    expected = rescale_rows(session.backbone.pooled(tokens))
    torch.testing.assert_close(customer.vectors(tokens), expected, atol=1e-4, rtol=1e-4)
    network = customer.network
    with torch.no_grad():
        padded = padded_mean(network, tokens, 64, customer.padding)
        one = padded_mean(network, tokens.take(torch.tensor([3])), 64, customer.padding)
    assert (padded - session.backbone.pooled(tokens)).abs().max() > 1e-3
    torch.testing.assert_close(padded[3:4], one, atol=1e-4, rtol=1e-4)


def test_the_reversed_gradient_makes_features_worse_for_the_adversary_which_itself_gets_better():
    customer, session, _ = customer_of(epsilon=None)
    assert set(customer.attributes) == set(session.texts.attributes)
    rows, features = session.all_rows, torch.randn(len(session.train), HIDDEN)
    gradient = customer.adversaries_gradient(features.clone(), rows)

    def loss(of):
        values = zip(customer.attributes.values(), customer.adversaries.values(), strict=True)
        return sum(torch.nn.functional.cross_entropy(a(of), v[rows]) for v, a in values).item()

    assert loss(features + 30 * gradient) > loss(features) > loss(features - 30 * gradient)
    before = loss(features)
    with torch.no_grad():
        for parameter in customer.adversaries.parameters():
            parameter -= 0.5 * parameter.grad
    assert loss(features) < before


@pytest.mark.parametrize("reversal", [0.0, 2.0])
def test_the_task_and_the_reversed_adversary_reach_the_layers_together(reversal, monkeypatch):
    marks = []

    def fixed(self, features, rows):
        return torch.ones_like(features)

    original = torch.Tensor.backward

    def noted(self, gradient=None, **rest):
        if self.ndim == 2 and self.shape[1] == HIDDEN:
            marks.append(gradient)
        return original(self, gradient, **rest)

    monkeypatch.setattr(Customer, "adversaries_gradient", fixed)
    monkeypatch.setattr(torch.Tensor, "backward", noted)
    session, _inputs, _ = fine_tuned(CAPE(epsilon=None, reversal=reversal))
    returned = session.wire.transcript().messages
    first = next(m for m in returned if m.channel == Channel.GRADIENTS and m.moment == 0)
    np.testing.assert_allclose(marks[0].numpy(), first.values[:16] - reversal, atol=1e-6)


def test_who_may_ask_the_trained_customer_reads_tokens_and_who_may_not_says_why(tmp_path):
    attacks = [PooledInversion(access="query", sentences=200), PooledInversion(sentences=200)]
    (record,) = run(tmp_path, CAPE(epsilon=None, reversal=0), attacks=attacks, limit=100)
    asked = leak_of(record, "pooled-inversion")
    assert asked.channel == SENT
    (refused,) = [leak for leak in record.leaks if leak.status == "skipped"]
    assert "the customer's own layers" in refused.reason
    assert "access: query" in refused.reason


def test_what_it_is_asked_is_answered_by_the_trained_layers_with_noise_of_the_asker():
    session, inputs, tuned = fine_tuned(CAPE(epsilon=1.0), train=TRAIN | {"learning_rate": 0.05})
    dev = inputs.tokens["dev"].take(torch.arange(6))
    answers = [tuned.sends(dev, np.random.default_rng(s)).values for s in (0, 0, 1)]
    assert torch.equal(answers[0], answers[1])
    assert not torch.equal(answers[0], answers[2])
    fresh = Customer(CAPE(epsilon=1.0), session)
    with torch.no_grad():
        untrained = fresh.features(fresh.vectors(dev), np.random.default_rng(0))
    assert not torch.allclose(answers[0], untrained, atol=1e-3)


@pytest.mark.parametrize("as_released", [False, True])
def test_the_texts_of_others_get_the_vectors_that_the_customers_own_would(as_released):
    session, inputs, _ = fine_tuned(CAPE(epsilon=None))
    customer = Customer(CAPE(epsilon=None, as_released=as_released), session)
    dev = inputs.tokens["dev"]
    torch.testing.assert_close(customer.asked(dev), customer.vectors(dev), rtol=1e-4, atol=1e-5)


def test_the_claim_names_a_dimension_and_the_vector_and_counts_the_epochs():
    session, _, _ = fine_tuned(CAPE(epsilon=0.5))
    parameters = session.claim.parameters
    assert parameters["epsilon_per_dimension"] == 0.5
    assert parameters["epsilon_per_vector"] == 0.5 * session.backbone.width
    assert "2 times" in session.claim.covers


@pytest.mark.parametrize("given", [{"epsilon": 0}, {"reversal": -1}])
def test_bad_values_are_refused_by_name(given):
    with pytest.raises(ValidationError, match=next(iter(given))):
        CAPE(**given)


def test_an_adversary_without_attributes_to_learn_is_refused():
    bare = Conditions(has_attributes=False)
    assert "no private attributes" in CAPE(reversal=0.5).skip(bare)
    assert CAPE(reversal=0).skip(bare) is None
    assert CAPE(epsilon=10).skip(bare) is None  # the default has no effect there
    assert CAPE(reversal=0.5).skip(Conditions()) is None


def test_a_record_with_the_default_runs_again_on_a_task_without_attributes():
    made = record("cape", CAPE(epsilon=10).params)
    defense, _ = methods_of_record(made.model_copy(update={"leaks": []}))
    assert defense == CAPE(epsilon=10)
    assert defense.skip(Conditions(has_attributes=False)) is None
