"""DP-SGD: what it claims, what it refuses, and that a canary is hidden by its noise alone."""

from __future__ import annotations

from dataclasses import replace
from math import e

import numpy as np
import pytest
import torch
from cells import load_tiny
from released import TEXTS, plan_of, run
from trainings import trainings_of

from leakboard.attacks.canary_exposure import CanaryExposure
from leakboard.attacks.membership import Membership
from leakboard.bench.backbones.language import LanguageModel
from leakboard.bench.contracts.cell import Plant, TrainSettings
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.defending import dp_sgd
from leakboard.bench.exchange.model_release import losses
from leakboard.bench.suites.suite import load_suite
from leakboard.defenses.dpsgd import DPSGD


def test_epsilon_is_that_of_the_noise_and_less_of_it_is_more_noise():
    claims = [run(plan_of(DPSGD(epsilon=e))).claim.parameters for e in (1.0, 8.0)]
    assert [c["epsilon"] for c in claims] == [1.0, 8.0]
    assert claims[0]["sigma"] > claims[1]["sigma"]
    given = run(plan_of(DPSGD(epsilon=None, sigma=claims[1]["sigma"]))).claim.parameters
    assert given["epsilon"] == pytest.approx(8.0, rel=0.02)
    assert given["rate"] == 8 / 40
    assert given["steps"] == 5


@pytest.mark.parametrize("delta", [0.5, 1 / 40])
def test_delta_that_protects_nobody_is_refused(delta):
    record = run(plan_of(DPSGD(delta=delta)))
    assert record.status == "failed"
    assert "delta: expected a number between 0 and 1/40" in record.reason


@pytest.mark.parametrize("bad", ["epsilon: 0", "epsilon: -3", "delta: 1", "clip: 0"])
def test_budget_that_is_none_is_refused_with_its_line(bad, tmp_path):
    suite = tmp_path / "suite.yaml"
    lines = ["name: s", "task: dialogues", "defenses:", f"  - dpsgd: {{{bad}}}", "attacks: all"]
    suite.write_text("\n".join(lines))
    with pytest.raises(LeakboardError, match=rf":4:.*{bad.split(':')[0]}.*(greater|less) than"):
        load_suite(str(suite))


def test_fewer_examples_than_a_batch_holds_are_in_every_batch():
    record = run(plan_of(DPSGD(epsilon=8), limit=5, epochs=3))
    assert (record.status, record.reason) == ("ok", "")
    claim = record.claim.parameters
    assert (claim["rate"], claim["steps"]) == (1.0, 3)
    # Google's accountant is asked in test_dp_sgd whether such a σ spends that ε.
    assert dp_sgd.epsilon_spent(claim["sigma"], 1.0, 3, claim["delta"]) <= 8 * 1.01


def test_it_trains_privately_on_all_examples_as_they_are_or_without_a_budget_plainly():
    for defense, sigma in ((DPSGD(epsilon=5), 2.0), (DPSGD(epsilon=None, sigma=0.7), 0.7)):
        (one,), session = trainings_of(defense)
        assert (one.private, one.masked, one.rows) == (True, set(), list(range(40)))
        assert one.sigma == session.claim.parameters["sigma"] == sigma
        assert not defense.undefended
    (plain,), session = trainings_of(DPSGD(epsilon=None))
    assert (plain.private, plain.masked, plain.rows, plain.release) == (False, set(), None, True)
    assert session.claim is None


def test_the_record_says_what_is_promised_to_an_author_and_ranks_authors():
    train = replace(TEXTS.splits["train"], authors=np.arange(40) // 4)
    task = replace(TEXTS, splits={**TEXTS.splits, "train": train})

    def record(plant):
        defense = DPSGD(epsilon=1, delta=1e-3)
        return run(plan_of(defense, task=task, plant=plant, attacks=(Membership(),)))

    one, few = record(Plant(audit=40)), record(Plant(audit=10, per_author=3))
    assert (one.claim.unit, few.claim.unit) == ("example", "author")
    assert few.claim.parameters["epsilon"] == pytest.approx(3, rel=0.01)
    assert few.claim.parameters["delta"] == pytest.approx(1e-3 * (1 + e + e**2), rel=0.02)
    assert [leak.units for leak in one.leaks] == [40, 40]
    assert [leak.units for leak in few.leaks] == [10, 10]


def test_epsilon_and_sigma_together_are_refused():
    with pytest.raises(ValueError, match="epsilon or sigma"):
        DPSGD(epsilon=1, sigma=1)


def test_dpsgd_of_all_weights_clips_over_all_of_them_and_hides_all_of_them():
    backbone = load_tiny("tiny-gpt2")
    tokens = backbone.encode(["call parcel at 3"], None, 16)
    network = LanguageModel(backbone, TrainSettings(tune="full")).train()
    everything = list(network.parameters())
    rng = np.random.default_rng(0)
    with dp_sgd.PrivateGradients(network, 0.1, 0.0, 1.0, rng, hooked=False) as gradients:
        gradients.add(losses(network, tokens, torch.zeros(1)))
        gradients.release()
    norm = torch.cat([p.grad.flatten() for p in everything]).norm()
    assert float(norm) == pytest.approx(0.1, rel=1e-4)
    with dp_sgd.PrivateGradients(network, 0.1, 1.0, 1.0, rng, hooked=False) as gradients:
        gradients.release()
    assert all(p.grad.abs().min() > 0 for p in everything)


@pytest.mark.parametrize("noise", [True, False])
def test_canary_planted_ten_times_is_hidden_by_dpsgd_and_found_where_its_noise_is_missing(
    noise, monkeypatch
):
    init = dp_sgd.PrivateGradients.__init__

    def drawn(self, module, clip, sigma, *rest):
        init(self, module, clip, sigma if noise else 0.0, *rest)

    monkeypatch.setattr(dp_sgd.PrivateGradients, "__init__", drawn)
    plant = Plant(canaries="my id is {digits}", copies=(10,), unseen=20)
    settings = {"attacks": (CanaryExposure(releases="last"),), "epochs": 20, "learning_rate": 1e-2}
    record = run(plan_of(DPSGD(epsilon=3, clip=10), plant=plant, **settings))
    ten, never = (leak.success.value for leak in record.leaks if leak.metric == "exposure")
    assert (ten - never <= 3) == noise
