"""The likelihood ratio, against its law and against a threshold."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import load_tiny
from numbered_texts import numbered
from released import plan_of
from scipy.stats import norm

from leakboard.attacks import membership
from leakboard.attacks.lira import Lira, ratios
from leakboard.attacks.membership import Membership
from leakboard.bench.backbones.network import Network
from leakboard.bench.contracts.cell import Plant, TrainSettings
from leakboard.bench.contracts.threat import Channel, Claim, Goal
from leakboard.bench.contracts.transcript import Guess, Transcript
from leakboard.bench.exchange import model_release
from leakboard.bench.exchange.model_release import class_scores, confidences
from leakboard.bench.methods.knowledge import Knowledge, Shadows
from leakboard.bench.records.store import Store
from leakboard.bench.running.runner import Runner
from leakboard.bench.scoring.one_run import auc
from leakboard.defenses.jft import JFT
from leakboard.defenses.redacted import Redacted


class TestRatio:
    def test_is_that_of_two_normal_laws_worked_by_hand(self):
        members = np.array([[1, 1], [1, 0], [0, 1], [0, 0]], bool)
        seen = Shadows(np.array([[2.0, 5.0], [4.0, 1.0], [0.0, 7.0], [1.0, 3.0]]), members)
        # In: means 3 and 6, squares 2 + 2 over two degrees of freedom. Out: 0.5 and 2, 0.5 + 2.
        mean_in, mean_out = np.array([3, 6]), np.array([0.5, 2])
        target = np.array([2.5, 4.0])
        known = norm.logpdf(target, mean_in, 2**0.5) - norm.logpdf(target, mean_out, 1.25**0.5)
        assert ratios(target, seen) == pytest.approx(known)

    def test_many_models_give_each_candidate_its_own_spread(self):
        rng, members = np.random.default_rng(0), np.zeros((64, 2), bool)
        members[::2] = True
        spread = np.array([0.1, 10.0])
        seen = Shadows(spread * rng.normal(size=(64, 2)) + members, members)
        # One unit above what models that saw it show: far for the first, nothing for the second.
        near, far = ratios(np.array([2.0, 2.0]), seen)
        assert near > 100
        assert abs(far) < 1

    def test_tells_members_where_candidates_differ_more_than_models_and_a_threshold_does_not(self):
        rng, n = np.random.default_rng(0), 400
        hard, members = rng.normal(0, 5, n), rng.random((17, n)) < 0.5
        values = hard + members + 0.5 * rng.normal(size=(17, n))
        plain = auc(values[0], members[0])
        told = auc(ratios(values[0], Shadows(values[1:], members[1:])), members[0])
        # Two normal laws a unit apart with a spread of 0.5: 0.92 where they are known.
        assert plain.high < 0.65
        assert 0.85 < told.value < norm.cdf(1 / (0.5 * 2**0.5)) + 0.03

    def test_scores_without_any_spread_are_no_error(self):
        members = np.array([[1], [1], [0], [0]], bool)
        alike = Shadows(np.array([[1.0], [1], [0], [0]]), members)
        assert np.isfinite(ratios(np.array([0.9]), alike)).all()


@pytest.mark.parametrize("defense", [Redacted(), JFT()])
def test_its_models_are_trained_on_masked_texts_by_the_defense_and_every_candidate_is_scored_masked(
    defense, tmp_path, monkeypatch
):
    def texts(tokens):
        return [tuple(ids.tolist()) for ids in tokens.ids.values.split(tokens.lengths.tolist())]

    def train(session, network, tokens, *given, **more):
        trained.append(texts(tokens))
        return learn(session, network, tokens, *given, **more)

    def measure(network, tokens, labels):
        scored.extend(texts(tokens))
        return confidences(network, tokens, labels)

    def privately(self, session, network, tokens, rows):
        kept.append(texts(tokens))
        model_release.fit(session, network, lambda rows: 0.0, tokens.lengths, [], True)
        return Claim(guarantee="", parameters={}, covers="")

    learn, trained, scored, kept = model_release.train, [], [], []
    monkeypatch.setattr(model_release, "train", train)
    monkeypatch.setattr(membership, "confidences", measure)
    monkeypatch.setattr(JFT, "train_privately", privately)
    n, models = 12, 5  # four of the attacker's, and the target
    task = numbered(0, n)
    plan = plan_of(defense, task=task, plant=Plant(audit=n), attacks=(Lira(shadows=4),))
    records = Runner(plan, Store(tmp_path)).run()
    assert [record.status for record in records] == ["ok"] * models
    assert records[-1].leaks[0].status == "ok"
    split, backbone = task.splits["train"], next(iter(plan.backbones.values()))
    masked = defense.as_trained(backbone, split)
    masks, open_ = (
        set(texts(backbone.encode(one.texts, None, 128, opened=True))) for one in (masked, split)
    )
    assert not masks & open_
    assert len(trained) == models
    assert all(set(own) < masks for own in trained)
    assert sorted(scored) == sorted([*masks] * models)
    assert len(kept) == (models if isinstance(defense, JFT) else 0)
    assert all(set(own) < open_ for own in kept)


def test_confidence_is_the_logit_of_the_probability_of_the_label():
    backbone = load_tiny("tiny-bert")
    torch.manual_seed(0)
    network = Network(backbone, 0, 3, TrainSettings(), slice(None)).eval()
    tokens = backbone.encode(["the parcel is late", "a refund", "thanks"], None, 16)
    labels = torch.tensor([0, 2, 1])
    with torch.no_grad():
        p = class_scores(network, tokens).softmax(1)[torch.arange(3), labels]
        assert confidences(network, tokens, labels).numpy() == pytest.approx(
            torch.logit(p).numpy(), abs=1e-5
        )


def test_target_is_measured_as_its_shadow_models_are_by_a_score_that_is_about_normal(monkeypatch):
    assert Lira(shadows=8).shadowed == (8, Membership(score="confidence"))
    shadows = Shadows(np.array([[4.0], [5.0], [0.0], [1.0]]), np.array([[1], [1], [0], [0]], bool))
    about = (Goal.MEMBERSHIP, Channel.MODEL, "train", np.zeros(1, int))
    monkeypatch.setattr(
        Membership,
        "guess",
        lambda self, *given: [
            Guess(*about, np.array([4.0 if self.score == "confidence" else 0.5]))
        ],
    )
    given = (Transcript(()), Knowledge(2, "cpu", shadows=shadows), np.random.default_rng(0))
    (guess,) = Lira().guess(*given)
    assert guess.values == ratios(np.array([4.0]), shadows)
