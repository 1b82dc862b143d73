"""What is said of a plan before it is run."""

from __future__ import annotations

import pytest
from cells import make

from leakboard.attacks.membership import Membership
from leakboard.attacks.prior import Prior
from leakboard.bench.contracts.cell import Plant
from leakboard.bench.contracts.threat import Claim
from leakboard.bench.defending import dp_sgd
from leakboard.bench.running.plan import plan_notes
from leakboard.bench.scoring import one_run
from leakboard.defenses.dpsgd import DPSGD
from leakboard.defenses.none import NoDefense

ASKED = (Membership(),)


def of_audit(*defenses, audit=20, attacks=ASKED, **fields):
    told = plan_notes(
        make(*defenses, plant=Plant(audit=audit, **fields), attacks=attacks, seeds=(0, 1))
    )
    return [line for line in told if line.startswith("cannot fail")]


@pytest.fixture
def asked(monkeypatch):
    """What an accountant was asked for, which is not there."""
    every = []

    def profile(epsilon, delta, sigma, rate, steps):
        every.append((epsilon, delta, rate, steps))
        return ((epsilon, delta),)

    monkeypatch.setattr(dp_sgd, "noise_for", lambda *given: 0.5)
    monkeypatch.setattr(dp_sgd, "profile", profile)
    return every


def test_an_audit_that_could_contradict_nothing_is_told_before_it_is_run(asked):
    most = one_run.ceiling(20, 0.1 / 38, ((8.0, 0.1 / 38),))
    assert of_audit(DPSGD(epsilon=8.0)) == [
        f"cannot fail: an audit of 20 coins can prove an epsilon of at most {most:.1f}, and dpsgd epsilon=8 "
        "claims 8: no outcome could contradict the claim; raise plant.audit"
    ]
    # 48 examples, of which coins keep ten out: three batches of 16 in each of two epochs.
    assert set(asked) == {(8.0, 0.1 / 38, 16 / 38, 6)}


def test_strange_candidates_are_counted_beside_all_texts(asked):
    assert len(of_audit(DPSGD(epsilon=8.0), candidates="strange")) == 1
    # 48 examples, and ten of the canaries.
    assert set(asked) == {(8.0, 0.1 / 58, 16 / 58, 8)}
    few, many = (Plant(audit=coins, candidates="strange") for coins in (96, 98))
    assert plan_notes(make(NoDefense(), plant=few, attacks=())) == []
    (line,) = plan_notes(make(NoDefense(), plant=many, attacks=()))
    assert line.startswith("planted: 49 lines of canaries and only 48 texts of reviews: ")


def test_the_whole_profile_is_asked_for_only_where_its_first_pair_is_not_enough(asked, monkeypatch):
    assert of_audit(DPSGD(epsilon=0.1)) == []
    assert not asked
    monkeypatch.setattr(one_run, "ceiling", lambda n, delta, profile: 9.0 if profile else 2.0)
    assert of_audit(DPSGD(epsilon=8.0)) == []
    assert asked


def test_nothing_is_said_of_audits_where_nobody_asks_or_nothing_is_claimed_of_members(asked):
    assert of_audit(DPSGD(epsilon=8.0), attacks=(Prior(),)) == []
    assert of_audit(DPSGD(epsilon=8.0), audit=0) == []
    assert of_audit(NoDefense(), DPSGD(epsilon=None)) == []

    class Vectors(NoDefense):
        """Claims something of vectors."""

        def claim(self):
            return Claim(guarantee="", parameters={"epsilon": 99.0}, covers="", unit="vector")

    assert of_audit(Vectors()) == []


def test_that_more_is_planted_than_there_are_texts_is_told_once():
    def told(copies, limit=48):
        plant = Plant(canaries="My ID is {digits}", copies=(copies,), each=5)
        fields = {"task": "dialogues", "model": "tiny-gpt2", "attacks": (), "limit": limit}
        return plan_notes(make(NoDefense(), plant=plant, seeds=(0, 1), **fields))

    (line,) = told(10)
    assert line.startswith("planted: 50 lines of canaries and only 48 texts of dialogues: ")
    assert told(9) == told(10, limit=50) == []
