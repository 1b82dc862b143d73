"""What P³EFT trains and predicts with: its weights, its regulariser, its vectors and its adapters."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import fine_tuned

from leakboard.bench.contracts.threat import Channel
from leakboard.bench.exchange.api import Api
from leakboard.defenses import p3eft
from leakboard.defenses.p3eft import P3EFT, obfuscated

SHORT = {"limit": 16, "train": {"epochs": 1}}


@pytest.fixture
def gradients(monkeypatch):
    """The gradients at the activations that were to be hidden."""
    found: list[torch.Tensor] = []

    def noted(gradient, *rest):
        found.append(gradient.clone())
        return obfuscated(gradient, *rest)

    monkeypatch.setattr(p3eft, "obfuscated", noted)
    return found


def test_regulariser_is_added_with_its_weight_to_the_loss_that_each_adapter_descends(
    gradients, monkeypatch
):
    told = torch.randn(64, generator=torch.Generator().manual_seed(0))
    monkeypatch.setattr(p3eft, "adversarial", lambda h, labels: (h @ told[: h.shape[1]]).sum())
    for weight in (0.0, 0.5):
        session, _, _ = fine_tuned(P3EFT(weight=weight), **SHORT)
    plain, more = gradients[:2], gradients[2:]
    width = session.backbone.width
    for one, other in zip(plain, more, strict=True):  # one step, two adapters
        torch.testing.assert_close(other - one, 0.5 * told[:width].expand(one.shape))


def test_second_regulariser_is_added_for_what_moved_and_for_each_difference(gradients, monkeypatch):
    told = torch.randn(64, generator=torch.Generator().manual_seed(0))
    monkeypatch.setattr(p3eft, "adversarial", lambda h, labels: (h @ told[: h.shape[1]]).sum())
    for adaptive in (0.0, 0.5):
        session, _, _ = fine_tuned(P3EFT(weight=0.0, adaptive=adaptive), **SHORT)
    expected = told[: session.backbone.width].expand(gradients[0].shape)
    first, second = gradients[2] - gradients[0], gradients[3] - gradients[1]
    # The sum is h_0 - u + h_1 - u + h_1 - h_0.
    torch.testing.assert_close(first, torch.zeros_like(expected), rtol=0, atol=1e-5)
    torch.testing.assert_close(second, 2 * 0.5 * expected)


def test_gradient_of_each_adapter_is_its_share_of_the_mixtures(gradients, monkeypatch):
    drawn = np.random.default_rng(0).uniform(0.5, 2.0, (2, 32))
    monkeypatch.setattr(p3eft, "mixing_weights", lambda *asked: drawn)
    session, _, _ = fine_tuned(P3EFT(weight=0), **SHORT)
    assert session.backbone.width == drawn.shape[1]
    one, other = gradients  # of one step, at which both adapters give the same activations
    weights = torch.from_numpy(drawn).float()
    torch.testing.assert_close(one / weights[0], other / weights[1], rtol=1e-4, atol=1e-7)
    assert not torch.allclose(one, other)


def test_secret_weights_that_were_drawn_mix_what_is_trained_and_what_is_predicted(monkeypatch):
    used, drawn = [], []
    mixed, mixing_weights = p3eft.mixed, p3eft.mixing_weights

    def noted(h, weights):
        used.append(weights.clone())
        return mixed(h, weights)

    def noted_draw(*asked):
        drawn.append(mixing_weights(*asked))
        return drawn[-1]

    monkeypatch.setattr(p3eft, "mixed", noted)
    monkeypatch.setattr(p3eft, "mixing_weights", noted_draw)
    _, inputs, tuned = fine_tuned(P3EFT(adapters=3), **SHORT)
    trained = len(used)
    tuned.predict(inputs.tokens["dev"], "dev")
    assert 0 < trained < len(used)
    (secret,) = drawn
    assert np.ptp(secret) > 1
    for weights in used:
        torch.testing.assert_close(weights.double(), torch.from_numpy(secret).float().double())


def test_mixture_weighs_each_dimension_of_each_adapter():
    h, weights = torch.randn(3, 5, 4), torch.randn(3, 4)
    expected = sum(h[i] * weights[i] for i in range(3))
    torch.testing.assert_close(p3eft.mixed(list(h), weights), expected)


def test_secret_scalars_have_both_signs_and_sizes_between_one_and_two():
    found = np.array(
        [obfuscated(torch.ones(2, 3), 3, 1.0, np.random.default_rng(s))[1] for s in range(200)]
    )
    assert (np.abs(found) >= 1).all()
    assert (np.abs(found) <= 2).all()
    assert (found < 0).mean() == pytest.approx(0.5, abs=0.1)
    # Independent of each other: no server learns a sign from that of another.
    assert np.abs(np.corrcoef(np.sign(found).T) - np.eye(3)).max() < 0.25


def test_every_adapter_is_trained_by_the_answers_to_its_own_vectors(monkeypatch):
    """With one adapter's gradients set to zero the other one alone moves."""
    silent = iter(range(100))

    def every_second(gradient, m, noise, rng):
        kept = gradient * (next(silent) % 2)
        return [kept] * m, [1.0 / m] * m

    monkeypatch.setattr(p3eft, "obfuscated", every_second)
    given, adapter = [], Api.adapter

    def noted(self, number=0):
        found = adapter(self, number)
        given.append((found, {name: value.detach().clone() for name, value in found.items()}))
        return found

    monkeypatch.setattr(Api, "adapter", noted)
    fine_tuned(P3EFT(), limit=16, train={"epochs": 1, "weight_decay": 0.0, "learning_rate": 1e-2})
    moved = [any(not torch.equal(now[k], was[k]) for k in now) for now, was in given]
    assert moved == [False, True]


def test_adapters_are_drawn_apart_by_their_number_and_alike_by_the_seed():
    session, _, _ = fine_tuned(P3EFT(), **SHORT)
    one, again = Api(session), Api(session)
    draws = [{k: v.detach() for k, v in one.adapter(i).items() if "lora_A" in k} for i in range(3)]
    for i in range(3):
        same = again.adapter(i)
        for name, value in draws[i].items():
            assert torch.equal(value, same[name])
            others = [draws[j][name] for j in range(3) if j != i]
            assert not any(torch.allclose(value, other) for other in others)
            assert value.std() == pytest.approx(float(draws[0][name].std()), rel=0.3)


def test_what_one_server_sees_of_a_batch_is_all_vectors_in_no_telling_order():
    session, _, _ = fine_tuned(P3EFT(vectors=3), **SHORT)
    seen = session.wire.transcript()
    parts = {part for _, part in seen.parts(Channel.GRADIENTS, 0)}
    assert parts == set(range(6))
