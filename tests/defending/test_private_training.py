"""What training with DP-SGD is given: rows, labels, rate, noise; and what it claims of them."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from cells import session_of

from leakboard.bench.defending import dp_sgd, private_training
from leakboard.bench.exchange import model_release
from leakboard.defenses.dpsgd import DPSGD


@pytest.fixture
def asked(monkeypatch):
    """What the accountant was asked for, and the noise that was drawn of."""
    found = []

    def noted(name, answer):
        def asked(*given):
            found.append((name, *given))
            return answer

        monkeypatch.setattr(dp_sgd, name, asked)

    noted("noise_for", 2.5)
    noted("epsilon_spent", 7.0)
    noted("profile", ((4.0, 0.005), (2.0, 0.1)))
    monkeypatch.setattr(private_training, "sgd", lambda *given: found.append(("sgd", *given[3:])))
    return found


def test_budget_is_that_of_the_rows_their_rate_and_all_steps(asked):
    session, _ = session_of(DPSGD(), limit=40, train={"epochs": 3, "batch_size": 16})
    rows = torch.arange(0, 40, 2)
    claim = DPSGD(epsilon=4, clip=0.5).train_privately(session, None, session.train, rows)
    # 20 examples in batches of 16: two steps in each epoch, in which each is with 16/20.
    (asked_for, promised, trained) = asked
    assert asked_for == ("noise_for", 4, pytest.approx(0.1 / 20), 16 / 20, 6)
    assert trained[0] == "sgd"
    assert trained[1].tolist() == rows.tolist()
    assert trained[2:] == (2.5, 0.5)
    assert promised == ("profile", 4, pytest.approx(0.1 / 20), 2.5, 16 / 20, 6)
    assert claim.profile == ((4.0, 0.005), (2.0, 0.1))
    told = claim.parameters
    assert (told["epsilon"], told["sigma"], told["rate"], told["steps"]) == (4, 2.5, 0.8, 6)
    asked.clear()
    defense = DPSGD(epsilon=None, sigma=1.5, delta=1e-4)
    claim = defense.train_privately(session, None, session.train, rows)
    assert asked[0] == ("epsilon_spent", 1.5, 16 / 20, 6, 1e-4)
    assert (claim.parameters["epsilon"], claim.parameters["sigma"]) == (7.0, 1.5)


def test_rows_alone_are_trained_on_with_their_own_labels_noise_and_clip(monkeypatch):
    session, _ = session_of(DPSGD(), limit=24, train={"epochs": 2, "batch_size": 8})
    network = session.trainee()
    rows = torch.tensor([1, 4, 9, 10, 13, 17, 20, 22])
    whole = {tuple(session.train.take(rows[[i]]).ids.values.tolist()): i for i in range(8)}
    assert len(whole) == 8
    seen, losses, gradients = [], model_release.losses, []

    def noted(network, tokens, labels):
        for ids, label in zip(
            torch.split(tokens.ids.values, tokens.ids.lengths.tolist()), labels, strict=True
        ):
            seen.append((whole[tuple(ids.tolist())], int(label)))
        return losses(network, tokens, labels)

    init = dp_sgd.PrivateGradients.__init__

    def opened(self, module, *given):
        gradients.append(given)
        init(self, module, *given)

    monkeypatch.setattr(model_release, "losses", noted)
    monkeypatch.setattr(dp_sgd.PrivateGradients, "__init__", opened)
    private_training.sgd(session, network, session.train, rows, 0.8, 0.3)
    assert {place for place, _ in seen} == set(range(8))
    assert all(label == session.labels[rows[place]] for place, label in seen)
    ((clip, sigma, expected, rng, hooked),) = gradients
    assert (clip, sigma, expected, hooked) == (0.3, 0.8, 8, True)
    assert rng is session.noise


def test_of_a_large_model_few_examples_pass_at_once(monkeypatch):
    session, _ = session_of(DPSGD(), limit=24, train={"epochs": 1, "batch_size": 24})
    longest, base = int(session.train.lengths.max()), session.backbone
    each = private_training.BYTES_PER_STATE * base.blocks * base.width * longest
    passed, longest_of, losses = [], [], model_release.losses

    def noted(network, tokens, labels):
        passed.append(len(tokens))
        longest_of.append(int(tokens.lengths.max()))
        return losses(network, tokens, labels)

    monkeypatch.setattr(model_release, "losses", noted)
    for held, sizes in ((5 * each, [5, 5, 5, 5, 4]), (each // 2, [1] * 24), (99 * each, [8] * 3)):
        monkeypatch.setattr(private_training, "FORWARD_BYTES", held)
        passed.clear()
        longest_of.clear()
        private_training.sgd(session, session.trainee(), session.train, torch.arange(24), 1.0, 1.0)
        assert passed == sizes
        assert longest_of == sorted(longest_of)  # short texts wait for no long ones
    # In large batches many examples have about the same length.
    sizes = [private_training._pass_size(session, session.train, n) for n in (32, 240, 4000)]
    assert sizes == [8, 30, 64]
    # On a card passes cost more than padding.
    card = dataclasses.replace(session, backbone=dataclasses.replace(base, device="cuda"))
    assert private_training._pass_size(card, session.train, 24) == 99
