"""The attack on canaries, on a model that saw some of them often."""

from __future__ import annotations

from released import plan_of, run

from attacks.canary_exposure import CanaryExposure
from bench.attacking.canaries import expected_unseen
from bench.contracts.settings import Plant
from defenses.none import NoDefense


def test_attack_on_canaries_finds_what_was_planted_often_and_not_what_was_not():
    plant = Plant(canaries="my id is {digits}", copies=(60,), unseen=20)
    attack, settings = CanaryExposure(releases="last"), {"tune": "full", "epochs": 6}
    plan = plan_of(NoDefense(), plant=plant, attacks=(attack,), learning_rate=1e-2, **settings)
    sixty, never = (leak for leak in run(plan).leaks if leak.metric == "exposure")
    assert sixty.success.value > 8
    assert never.success.low < expected_unseen(10**6) < never.success.high
