"""Membership: members are told from others, and DP-SGD hides them while its noise is there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from cells import load_tiny
from numbered_texts import numbered
from released import audited

from leakboard.attacks import membership
from leakboard.attacks.membership import Membership
from leakboard.attacks.min_k import MinK
from leakboard.attacks.rmia import Rmia
from leakboard.bench.attacking import members
from leakboard.bench.contracts.threat import Channel, Knows
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.defending import dp_sgd
from leakboard.bench.methods.knowledge import Auxiliary, Knowledge
from leakboard.bench.scoring import NEEDED, advantage_low
from leakboard.bench.scoring.checks import flags
from leakboard.bench.tasks.reviews import reviews
from leakboard.bench.tasks.task import Split, Task
from leakboard.defenses.dpsgd import DPSGD
from leakboard.defenses.none import NoDefense
from leakboard.defenses.redacted import Redacted


def test_members_of_a_language_model_that_memorises_are_told_from_the_others():
    words = [w for w in load_tiny("tiny-gpt2").tokenizer.get_vocab() if w.isalpha()][:300]
    rng = np.random.default_rng(0)
    texts = tuple(" ".join(rng.choice(words, 8)) for _ in range(100))
    split = Split(texts, np.zeros(100, np.int64))
    task = Task("noise", (), {"train": split, "dev": split.take(np.arange(5))})
    _, leak = audited(NoDefense(), task, tune="full", epochs=10, learning_rate=1e-2)
    assert leak.success.low > 0.9
    assert advantage_low(leak) >= NEEDED


def test_members_that_were_masked_are_found_by_who_masks_the_candidates_alike():
    """And by their least likely tokens a good deal better than by who scores them as they are."""
    kinds = (Membership, Rmia, MinK)
    attacks = [kind(candidates=which) for kind in kinds for which in ("masked", "raw")]
    settings = {"tune": "full", "epochs": 4, "learning_rate": 5e-3}
    found = []
    for seed in range(3):
        record, _ = audited(Redacted(), numbered(seed), *attacks, **settings)
        found.append([leak.success.value for leak in record.leaks if leak.metric == "AUC"])
    means = np.mean(found, 0).reshape(3, 2)
    assert means[:, 0].min() > 0.95
    # Digits that nobody was trained on are the least likely tokens; less the public model's they hurt little.
    assert (means[:, 0] - means[:, 1] > [-0.01, -0.01, 0.3]).all()


def test_dpsgd_without_its_noise_is_caught_by_the_audit_and_with_it_is_not(monkeypatch):
    whole = reviews().splits["train"]
    labels = np.random.default_rng(0).integers(0, 2, 120)  # nothing to learn but the examples
    split = Split(whole.texts[:120], labels)
    task = Task("random", ("a", "b"), {"train": split, "dev": split.take(np.arange(5))})
    settings = {"epochs": 15, "learning_rate": 3e-2}
    sound, leak = audited(DPSGD(epsilon=0.5, clip=10), task, **settings)
    assert leak.epsilon <= 0.5
    assert "claim-violated" not in str(flags([sound]))
    init = dp_sgd.PrivateGradients.__init__

    def silent(self, module, clip, sigma, *rest):
        init(self, module, clip, 0.0, *rest)

    monkeypatch.setattr(dp_sgd.PrivateGradients, "__init__", silent)
    broken, leak = audited(DPSGD(epsilon=0.1, clip=10), task, **settings)
    assert leak.epsilon > 0.1
    assert "claim-violated" in str(flags([broken]))


@pytest.fixture
def told(monkeypatch):
    """An attack on models of which each has one loss for each candidate: what it says of them."""
    public, released = np.array([5.0, 1.0, 3.0]), {1: [9.0, 9.0, 9.0], 4: [4.0, 2.0, 1.0]}
    base = load_tiny("tiny-bert")
    tokens = base.encode(["a", "the food was good", "not good"], None, 16)

    class Model:
        losses = public

        def eval(self):
            return self

        def trained(self):
            return [torch.tensor(self.losses)]

    def restored(network, vector):
        network.losses = np.array(released[int(vector[0])])
        return network

    def of_each(network, own, labels):
        rows = [sizes.index(int(n)) for n in own.lengths]
        return torch.from_numpy(network.losses[rows])

    sizes = tokens.lengths.tolist()
    assert len(set(sizes)) == 3
    monkeypatch.setattr(members, "restore", restored)
    monkeypatch.setattr(members, "losses", of_each)
    monkeypatch.setattr(membership, "confidences", lambda *given: 10 * of_each(*given))

    def model(round):
        values = np.full((1, 2), round, np.float32)
        where = (Channel.MODEL, "train", round, "customer", "public", 0, np.zeros(1, int))
        return Message(*where, values, None)

    def guessed(classes=0, masked=False, **fields):
        # The masked ones are the same in another order, so that what was read can be told.
        other = tokens.take(torch.tensor([2, 0, 1])) if masked else None
        candidates = Auxiliary(tokens, np.zeros(3, np.int64), masked=other)
        knowledge = Knowledge(classes, "cpu", base=base, network=Model, candidates=candidates)
        seen = Transcript((model(1), model(4)))
        (guess,) = Membership(**fields).guess(seen, knowledge, np.random.default_rng(0))
        assert guess.round == 4
        return guess.values.tolist()

    return guessed


def test_of_the_last_model_those_rank_first_whose_loss_is_small_or_has_fallen(told):
    assert told(score="loss") == [-4.0, -2.0, -1.0]
    assert told() == [5.0 - 4.0, 1.0 - 2.0, 3.0 - 1.0]
    assert told(score="confidence") == [40.0, 20.0, 10.0]


def test_classifier_is_not_calibrated_since_its_head_says_nothing_before_training(told):
    assert told(classes=2) == told(score="loss")


def test_candidates_are_scored_as_training_would_see_them_unless_that_is_not_known(told):
    assert told(score="loss", masked=True) == [-1.0, -4.0, -2.0]
    assert told(masked=True) == [3.0 - 1.0, 5.0 - 4.0, 1.0 - 2.0]
    assert told(score="loss", masked=True, candidates="raw") == told(score="loss")
    assert Knows.MECHANISM in Membership().needs
    assert Knows.MECHANISM not in Membership(candidates="raw").needs


def test_the_losses_under_a_model_are_computed_once_for_all_attacks(monkeypatch):
    asked = []

    class Model:
        def __init__(self, value):
            self.value = value

        def trained(self):
            return [torch.tensor([self.value])]

    def of_each(network, own, labels):
        asked.append(network.value)
        return torch.full((len(own),), network.value)

    monkeypatch.setattr(members, "losses", of_each)
    tiny = load_tiny("tiny-bert")
    told = Auxiliary(tiny.encode(["a", "not good"], None, 16), np.zeros(2, int))
    for attack in (Membership(), Rmia(), Membership(candidates="raw")):
        for value in (1.0, 2.0):
            found = attack.losses(Model(value), told)
            assert found.tolist() == [value, value]
            found[:] = 0  # what one attack does with them does not reach the next
    assert asked == [1.0, 2.0]
    # The candidates of another defense, which masks them.
    masking = replace(told, masked=tiny.encode(["[MASK]", "not good"], None, 16))
    for attack in (Membership(), Membership(candidates="raw")):
        attack.losses(Model(1.0), masking)
    assert asked == [1.0, 2.0, 1.0]
