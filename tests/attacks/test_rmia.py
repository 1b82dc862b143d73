"""RMIA: its ratio worked by hand, members found, and what each parameter does."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import load_tiny
from numbered_texts import numbered
from released import audited
from scipy.special import expit

from leakboard.attacks.membership import Membership
from leakboard.attacks.rmia import Rmia
from leakboard.bench.attacking import members
from leakboard.bench.contracts.threat import Knows
from leakboard.bench.methods.knowledge import Auxiliary, Knowledge, Shadows
from leakboard.bench.scoring import NEEDED, advantage_low
from leakboard.defenses.blackout import Blackout
from leakboard.defenses.none import NoDefense

AFTER, BEFORE = {"x": [0.5, 0.2, 0.9], "z": [0.4, 0.3]}, {"x": [0.4, 0.1, 0.9], "z": [0.4, 0.6]}
"""Probabilities of candidates and of public texts under the released model and the public one."""


@pytest.fixture
def shares(monkeypatch):
    """The scores of three candidates beside two public texts, whose probabilities are `AFTER` and `BEFORE`."""
    base = load_tiny("tiny-bert")
    texts = {
        "x": ["a", "the food", "not good at"],
        "z": ["we will call you", "so it was all right"],
    }
    tokens = {name: base.encode(own, None, 16) for name, own in texts.items()}
    every = tokens["x"].lengths.tolist() + tokens["z"].lengths.tolist()
    assert len(set(every)) == 5

    class Model:
        known = BEFORE

        def eval(self):
            return self

        def trained(self):
            return [torch.tensor(self.known["x"])]

    def losses(network, own, labels):
        told = -np.log(network.known["x"] + network.known["z"])
        return torch.from_numpy(told[[every.index(int(n)) for n in own.lengths]])

    monkeypatch.setattr(members, "losses", losses)

    def scored(classes=0, shadows=None, **fields):
        released = Model()
        released.known = AFTER
        told = {name: Auxiliary(own, np.zeros(len(own), int)) for name, own in tokens.items()}
        knowledge = Knowledge(
            *(classes, "cpu"),
            network=Model,
            candidates=told["x"],
            auxiliary=told["z"],
            shadows=shadows,
        )
        return Rmia(**fields).scores(released, knowledge)

    return scored


def ratios(name, a, before=None):
    out = np.array(BEFORE[name]) if before is None else before
    return np.array(AFTER[name]) / ((1 + a) / 2 * out + (1 - a) / 2)


def expected(a, gamma, before=None):
    x, z = ratios("x", a, before), ratios("z", a, before)
    beaten = (x[:, None] / z >= gamma).sum(1)
    return (beaten + expit(np.log(x))) / (len(z) + 1)


@pytest.mark.parametrize(
    ("a", "gamma"), [(0.3, 1.0), (0.9, 1.0), (0.9, 1.5), (0.0, 0.5), (1.0, 1.7)]
)
def test_share_of_public_texts_that_are_beaten_is_that_of_the_paper(shares, a, gamma):
    assert shares(a=a, gamma=gamma) == pytest.approx(expected(a, gamma))


def test_a_decides_who_gained_most(shares):
    """With a = 1 what counts is the ratio to the public model; with a = 0 hardly anything but the released one."""
    assert shares(a=1).argmax() == 1  # from 0.1 to 0.2
    assert shares(a=0).argmax() == 2  # 0.9, before as after


def test_a_larger_gamma_beats_fewer_public_texts(shares):
    few, many = shares(a=1, gamma=5), shares(a=1, gamma=0.25)
    assert (few < 1 / 3).all()
    assert (many > 2 / 3).all()


def test_public_model_finds_all_classes_equally_likely(shares):
    assert shares(classes=4, a=0.5) == pytest.approx(expected(0.5, 1.0, before=0.25))


def test_a_is_tuned_on_models_of_the_attackers_own(shares):
    """In the first kind of them members gained most on the public model, in the other they are likeliest."""
    by_gain = np.log([[0.4, 0.2, 0.9]] * 2), np.array([[False, True, False]] * 2)
    assert shares(a="tuned", shadows=Shadows(*by_gain)) == pytest.approx(expected(0.8, 1.0))
    by_level = np.log([[0.4, 0.2, 0.9]] * 2), np.array([[False, False, True]] * 2)
    assert shares(a="tuned", shadows=Shadows(*by_level)) == pytest.approx(expected(0.0, 1.0))
    assert Rmia(a="tuned", models=3).shadowed == (3, Membership(score="loss"))
    assert Knows.SHADOWS in Rmia(a="tuned").needs


def test_without_tuning_no_model_is_trained_and_older_records_are_its_own():
    assert Rmia().shadowed is None
    assert Knows.SHADOWS not in Rmia().needs
    assert Rmia().params == {"candidates": "masked", "gamma": 1.0, "a": 0.3, "population": 250}


def test_no_more_public_texts_are_asked_for_than_it_says(shares):
    x, z = ratios("x", 0.9), ratios("z", 0.9)[:1]
    beaten = (x[:, None] / z >= 1).sum(1)
    assert shares(a=0.9, population=1) == pytest.approx((beaten + expit(np.log(x))) / 2)


def test_members_are_found_without_protection_and_not_on_noise():
    settings = {"tune": "full", "epochs": 5, "learning_rate": 5e-3}
    _, leak = audited(NoDefense(), numbered(0), Rmia(), **settings)
    assert leak.success.low > 0.6
    assert advantage_low(leak) >= NEEDED
    _, leak = audited(Blackout(), numbered(0), Rmia(), **settings)
    assert leak.success.low <= 0.5
