"""Each broken attack is caught by its rule."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import count
from typing import ClassVar

import numpy as np
import pytest
from reports import alone, broken, give_names, outcome, rules_of

from leakboard.attacks.aia_mlp import MeanMLP
from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.attacks.logit_gradient import LogitGradient
from leakboard.bench.conformance import attack_rules
from leakboard.bench.conformance.attack_rules import AttackRules
from leakboard.bench.conformance.check import check_attack
from leakboard.bench.contracts.cell import Seeds
from leakboard.bench.contracts.threat import Channel, Goal, ThreatModel
from leakboard.bench.contracts.transcript import Guess
from leakboard.bench.methods import registry
from leakboard.defenses.sap import SAP, Eta


@pytest.mark.parametrize("attack", [NearestNeighbour, LogitGradient])
def test_every_rule_applies_to_an_attack_that_works(attack):
    assert {r.outcome for r in check_attack(attack).results} == {"passed"}


class Writer(LogitGradient):
    """Works in place on what it was shown."""

    def guess(self, seen, knowledge, rng):
        for message in seen.messages:
            message.values[...] = 0
        return super().guess(seen, knowledge, rng)


class DeterminedWriter(LogitGradient):
    """Makes the arrays writable first."""

    def guess(self, seen, knowledge, rng):
        guesses = super().guess(seen, knowledge, rng)
        for message in seen.messages:
            message.values.setflags(write=True)
            message.values[...] = 0
        return guesses


class TrainsTheModel(NearestNeighbour):
    """Changes the model that all attacks share."""

    def guess(self, seen, knowledge, rng):
        guesses = super().guess(seen, knowledge, rng)
        next(knowledge.base.model.parameters()).data.zero_()
        return guesses


class EasyRows(LogitGradient):
    """Guesses about the first half only."""

    def guess(self, seen, knowledge, rng):
        (guess,) = super().guess(seen, knowledge, rng)
        half = len(guess.rows) // 2
        return [dataclasses.replace(guess, rows=guess.rows[:half], values=guess.values[:half])]


class Shares(LogitGradient):
    """Guesses how likely a label is."""

    def guess(self, seen, knowledge, rng):
        (guess,) = super().guess(seen, knowledge, rng)
        return [dataclasses.replace(guess, values=guess.values / 2)]


class Moody(LogitGradient):
    """Guesses otherwise each time, about another row."""

    asked: ClassVar[Iterator[int]] = count()

    def guess(self, seen, knowledge, rng):
        (guess,) = super().guess(seen, knowledge, rng)
        values = guess.values.copy()
        row = next(self.asked) % len(values)
        values[row] = 1 - values[row]
        return [dataclasses.replace(guess, values=values)]


class Peeking(LogitGradient):
    """Looks at the logits besides, and does not say so."""

    def guess(self, seen, knowledge, rng):
        (guess,) = super().guess(seen, knowledge, rng)
        if Channel.LOGITS not in seen.channels:
            return [guess]
        seen_too = seen.collect(Channel.LOGITS).values[0, 0] > 0
        values = guess.values.copy()
        values[0] = int(seen_too)
        return [dataclasses.replace(guess, values=values)]


class NeedsTheModel(NearestNeighbour):
    """Needs the base weights and does not say so."""

    threat: ClassVar[ThreatModel] = dataclasses.replace(NearestNeighbour.threat, knows=frozenset())


class TakesTheModel(LogitGradient):
    """Makes do without the base weights, and would use them."""

    def guess(self, seen, knowledge, rng):
        (guess,) = super().guess(seen, knowledge, rng)
        return [guess] if knowledge.base is None else []


class Hopeless(LogitGradient):
    """Tosses a coin."""

    def guess(self, seen, knowledge, rng):
        (guess,) = super().guess(seen, knowledge, rng)
        return [dataclasses.replace(guess, values=rng.integers(2, size=len(guess.rows)))]


class Aimless(LogitGradient):
    """Does not say what it guesses."""

    threat: ClassVar[ThreatModel] = dataclasses.replace(LogitGradient.threat, goals=frozenset())

    def guess(self, seen, knowledge, rng):
        return []


@pytest.fixture
def quick(monkeypatch):
    """The second chance of an attack is no larger than the first."""
    monkeypatch.setattr(attack_rules, "LARGER", ())


SCORED = "guesses about every recorded example, and can be scored"
BROKEN_ATTACKS = {
    Writer: {"leaves the transcript as it was", SCORED},
    DeterminedWriter: {"leaves the transcript as it was"},
    TrainsTheModel: {"leaves the public model as it was"},
    EasyRows: {SCORED},
    Shares: {SCORED},
    Moody: {"guesses the same again with the same seed"},
    Peeking: {"reads the channels that it declares, and no other"},
    NeedsTheModel: {SCORED, "uses the knowledge that it declares, and no other"},
    TakesTheModel: {"uses the knowledge that it declares, and no other"},
    Hopeless: {"beats chance where nothing is protected"},
    Aimless: {"declares its threat model"},
}
give_names(BROKEN_ATTACKS)


@pytest.mark.parametrize("attack", BROKEN_ATTACKS, ids=lambda cls: cls.__name__)
def test_broken_attack_is_caught_by_its_rule_and_by_no_other(attack, quick):
    assert broken(check_attack(attack)) == BROKEN_ATTACKS[attack]


@pytest.mark.parametrize(
    ("attack", "rule"),
    [
        pytest.param(cls, rule, id=f"{cls.__name__}-{name}")
        for cls, texts in BROKEN_ATTACKS.items()
        for rule, name in rules_of(AttackRules).items()
        if rule in texts
    ],
)
def test_rule_by_itself_catches_who_breaks_it(attack, rule, quick):
    assert alone(AttackRules(attack, "tiny-bert"), rule) == "failed"


def test_rule_by_itself_catches_what_is_found_in_noise(monkeypatch):
    class Open(SAP):
        """Stands for noise in which the truth is left."""

        eta: Eta = None

    monkeypatch.setattr(registry, "defense", lambda name: Open)
    rules = AttackRules(NearestNeighbour, "tiny-bert")
    assert alone(rules, "finds nothing in pure noise") == "failed"


def test_attack_that_finds_something_in_noise_is_caught(monkeypatch):
    class Leaky(SAP):
        """Stands for a blackout, or an attack, through which the truth leaks."""

        eta: Eta = None

    monkeypatch.setattr(registry, "defense", lambda name: Leaky)
    report = check_attack(NearestNeighbour)
    assert broken(report) == {"finds nothing in pure noise"}
    assert "inversion dev, inversion train" in report.failures[0].detail


def test_luck_in_one_draw_of_noise_is_no_finding(monkeypatch):
    class LuckyOnce(SAP):
        """Leaks with one of two seeds."""

        def fine_tune(self, session):
            lucky = session.seeds == Seeds.of(0)
            return SAP(eta=None if lucky else 1.0).fine_tune(session)

    monkeypatch.setattr(registry, "defense", lambda name: LuckyOnce)
    assert alone(AttackRules(NearestNeighbour, "tiny-bert"), "pure noise") == "passed"


def test_attack_that_beats_chance_without_reaching_its_certificate_is_told_as_not_examined(quick):
    class Tenth(NearestNeighbour):
        """Reads about every tenth token of those that guessing misses."""

        name: ClassVar[str] = "unsure"

        def guess(self, seen, knowledge, rng):
            guesses = super().guess(seen, knowledge, rng)
            for guess in guesses:
                guess.values[np.arange(len(guess.values)) % 6 > 0] = 0
            return guesses

    report = check_attack(Tenth)
    assert report.passed
    told = outcome(report, "beats chance")
    assert told.outcome == "not applicable"
    assert "below 0.2" in told.detail


def test_attack_that_needs_many_examples_gets_them():
    class Slow(LogitGradient):
        """Works out how to read a label once it has seen some hundred rows."""

        def guess(self, seen, knowledge, rng):
            (guess,) = super().guess(seen, knowledge, rng)
            if len(guess.rows) > 500:
                return [guess]
            return [dataclasses.replace(guess, values=np.zeros_like(guess.values))]

    assert alone(AttackRules(Slow, "tiny-bert"), "beats chance") == "passed"


CHANCE = "beats chance where nothing is protected"


def test_attack_that_learns_what_texts_say_plainly_earns_its_certificate():
    assert alone(AttackRules(MeanMLP, "tiny-bert"), CHANCE) == "passed"


def test_plain_texts_help_no_attack_that_tosses_coins(monkeypatch):
    monkeypatch.setattr(attack_rules, "LARGER", attack_rules.LARGER[:1])
    assert alone(AttackRules(Hopeless, "tiny-bert"), CHANCE) == "failed"


def test_attack_that_reads_what_no_undefended_defense_sends_is_told_as_not_examined(monkeypatch):
    monkeypatch.setattr(attack_rules, "undefended", lambda: [SAP(eta=None)])

    class Elsewhere(LogitGradient):
        """Reads a channel that is not used here."""

        name: ClassVar[str] = "elsewhere"
        threat: ClassVar[ThreatModel] = ThreatModel(
            frozenset({Goal.LABEL}), frozenset({Channel.PARAMETERS})
        )

    report = check_attack(Elsewhere)
    assert report.passed
    assert "no undefended defense sends" in outcome(report, SCORED).detail
    assert "does not send parameters" in outcome(report, "pure noise").detail


def test_attack_on_a_channel_that_only_a_parameter_opens_is_examined_there():
    class ByCut(LogitGradient):
        """Guesses from the size of the gradients at the cut, which tells it nothing."""

        threat: ClassVar[ThreatModel] = ThreatModel(
            frozenset({Goal.LABEL}), frozenset({Channel.CUT_GRADIENTS})
        )

        def guess(self, seen, knowledge, rng):
            block = seen.collect(Channel.CUT_GRADIENTS)
            ones = np.ones(len(block.rows), np.int64)
            return [Guess(Goal.LABEL, Channel.CUT_GRADIENTS, "train", block.rows, ones)]

    assert "bottom=trainable" in AttackRules(ByCut, "tiny-bert").can_be_scored()


def test_attack_on_what_the_vendor_works_out_is_examined():
    rules = AttackRules(registry.attacks()["activation-drift"], "tiny-bert")
    assert alone(rules, SCORED) == "passed"
    assert any(Channel.RECOMPUTED in cell.sent.channels for cell in rules.cells)
