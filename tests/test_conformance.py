"""Registered methods keep the rules of the house, and each broken method is caught by its rule."""

from __future__ import annotations

import dataclasses
import io
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from pydantic import ConfigDict
from rich.console import Console

from attacks.eia_nn import NearestNeighbour
from attacks.logit_gradient import LogitGradient
from bench.conformance.attack_rules import AttackRules
from bench.conformance import attack_rules
from bench.conformance.check import check_attack, check_defense, check_method
from bench.contracts.channels import Channel
from bench.contracts.errors import LeakboardError
from bench.contracts.guess import Guess
from bench.contracts.seeds import Seeds
from bench.contracts.threat import Goal, ThreatModel
from bench.exchange.predictor import Predictor
from bench.exchange.tuned import Tuned
from bench.methods import registry
from bench.methods.method import Source
from defenses.none import NoDefense
from defenses.sap import SAP, Eta

METHODS = {**registry.defenses(), **registry.attacks()}


def broken(report):
    return {result.rule for result in report.failures}


def outcome(report, rule):
    (result,) = (r for r in report.results if rule in r.rule)
    return result


@pytest.mark.parametrize("name", METHODS)
def test_every_registered_method_keeps_the_rules(name):
    check_method(name).raise_if_failed()


@pytest.mark.parametrize("attack", [NearestNeighbour, LogitGradient])
def test_every_rule_applies_to_an_attack_that_works(attack):
    assert {r.outcome for r in check_attack(attack).results} == {"passed"}


def test_every_rule_applies_to_a_defense_with_noise_on_what_it_sends_and_none_in_its_answer():
    report = check_defense(registry.defense("blackout"))
    assert {r.outcome for r in report.results} == {"passed"}


# Broken defenses


class Undeclared(NoDefense):
    """Sends gradients that it does not declare."""

    emits: ClassVar[frozenset[Channel]] = frozenset({Channel.TOKENS, Channel.ACTIVATIONS})


class TrainsThePublicModel(NoDefense):
    """Changes the public model before it trains."""

    def fine_tune(self, session):
        tuned = super().fine_tune(session)
        next(session.backbone.model.parameters()).data.mul_(0.9)
        return tuned


class Unseeded(SAP):
    """Draws noise that no seed decides."""

    def fine_tune(self, session):
        session.noise = np.random.default_rng()
        return super().fine_tune(session)


class AlwaysTheSameNoise(SAP):
    """Draws noise with a seed of its own."""

    def fine_tune(self, session):
        session.noise = np.random.default_rng(0)
        return super().fine_tune(session)


class Crashing(NoDefense):
    """Does not get far."""

    def fine_tune(self, session):
        raise ZeroDivisionError("no head")


class Mute(NoDefense):
    """Says nothing to anybody."""

    def fine_tune(self, session):
        return Predictor(lambda tokens, rows, split: torch.zeros(len(rows), session.classes))


class Changed(Tuned):
    """The scores of another predictor, changed."""

    def __init__(self, inner, change):
        self.inner, self.change = inner, change

    def predict(self, tokens, split):
        return self.change(self.inner.predict(tokens, split))


class Fewer(NoDefense):
    """Has no answer for the last example."""

    def fine_tune(self, session):
        return Changed(super().fine_tune(session), lambda scores: scores[:-1])


class NotANumber(NoDefense):
    """Has a score that is no number."""

    def fine_tune(self, session):
        return Changed(super().fine_tune(session), lambda scores: scores * torch.nan)


class ByPlace(NoDefense):
    """Favours the examples that come late."""

    def fine_tune(self, session):
        return Changed(
            super().fine_tune(session), lambda scores: scores + torch.arange(len(scores))[:, None]
        )


class Misshapen(NoDefense):
    """Sends fewer vectors than there are tokens on a channel that has one per token."""

    emits: ClassVar[frozenset[Channel]] = NoDefense.emits | {Channel.REPRESENTATIONS}

    def fine_tune(self, session):
        vectors = torch.zeros(len(session.train), session.backbone.width)
        session.wire.send(Channel.REPRESENTATIONS, vectors, session.all_rows)
        return super().fine_tune(session)


class BadName(NoDefense):
    """Has a name that no file could have."""

    name: ClassVar[str] = "Bad_Name"


class NoSource(NoDefense):
    """Comes from nowhere."""

    source: ClassVar[Source] = Source("")


class NoDocstring(NoDefense):
    pass


class NoVersion(NoDefense):
    """Begins to count at zero."""

    version: ClassVar[int] = 0


class NoDefault(NoDefense):
    """Has a parameter that one must give."""

    strength: float
    """How much."""


class NoParameterDocstring(NoDefense):
    """Has a parameter that nobody explains."""

    strength: float = 1.0


class NotJson(NoDefense):
    """Has a parameter that JSON turns into something else."""

    shape: Any = (1, 2)
    """Of something."""


class TakesAnything(NoDefense):
    """Takes parameters that it does not have."""

    model_config = ConfigDict(extra="ignore")


class NoChannels(NoDefense):
    """Declares nothing, and crashes before it can send."""

    emits: ClassVar[frozenset[Channel]] = frozenset()

    def fine_tune(self, session):
        raise ZeroDivisionError("no channel")


ENDS = "fine-tunes to the end"
SHAPE = "predicts a finite score of each class for each example"
BROKEN_DEFENSES = {
    Undeclared: {"sends on declared channels only", ENDS},
    TrainsThePublicModel: {"leaves the public model as it was"},
    Unseeded: {"does the same again with the same seeds"},
    AlwaysTheSameNoise: {"draws its noise with the mechanism's seed"},
    Crashing: {ENDS},
    Mute: {"uses the channels that it declares", "has its bytes counted in each direction"},
    Fewer: {SHAPE, ENDS, "predicts the same whatever the order of the examples"},
    NotANumber: {SHAPE, ENDS},
    ByPlace: {"predicts the same whatever the order of the examples"},
    Misshapen: {"can be attacked by every attack that fits"},
    BadName: {"has a name of lower-case words joined by '-'"},
    NoSource: {"names its source"},
    NoDocstring: {"says in its docstring what it does"},
    NoVersion: {"has a version of 1 or more"},
    NoDefault: {"gives each parameter a default and a docstring"},
    NoParameterDocstring: {"gives each parameter a default and a docstring"},
    NotJson: {"has parameters that survive JSON"},
    TakesAnything: {"refuses unknown parameters"},
    NoChannels: {"declares the channels on which it sends", ENDS},
}


@pytest.mark.parametrize("defense", BROKEN_DEFENSES, ids=lambda cls: cls.__name__)
def test_broken_defense_is_caught_by_its_rule_and_by_no_other(defense):
    assert broken(check_defense(defense)) == BROKEN_DEFENSES[defense]


def test_channel_that_some_parameter_opens_counts_as_used_and_one_that_none_opens_is_told():
    class Promising(SAP):
        """Declares a channel that nothing opens."""

        emits: ClassVar[frozenset[Channel]] = SAP.emits | {Channel.PARAMETERS}

    rule = "uses the channels"
    assert outcome(check_defense(SAP), rule).outcome == "passed"
    told = outcome(check_defense(Promising), rule)
    assert told.outcome == "not applicable"
    assert "parameters" in told.detail
    assert "cut-gradients" not in told.detail


def test_defense_that_refuses_every_cut_is_told_as_not_examined_rather_than_broken():
    class Deep(NoDefense):
        """Runs nowhere."""

        def refuses(self, cut):
            return "only below the ground"

    report = check_defense(Deep)
    assert report.passed
    assert "only below the ground" in outcome(report, ENDS).detail


# Broken attacks


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
    """Guesses otherwise each time, about one row in twenty."""

    def guess(self, seen, knowledge, rng):
        (guess,) = super().guess(seen, knowledge, rng)
        flip = np.random.default_rng().random(len(guess.values)) < 0.05
        return [dataclasses.replace(guess, values=np.where(flip, 1 - guess.values, guess.values))]


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


@pytest.mark.parametrize("attack", BROKEN_ATTACKS, ids=lambda cls: cls.__name__)
def test_broken_attack_is_caught_by_its_rule_and_by_no_other(attack, quick):
    assert broken(check_attack(attack)) == BROKEN_ATTACKS[attack]


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
    assert outcome(check_attack(NearestNeighbour), "pure noise").outcome == "passed"


def test_attack_that_beats_chance_without_reaching_its_certificate_is_told_as_not_examined(quick):
    class Half(NearestNeighbour):
        """Reads every second token."""

        def guess(self, seen, knowledge, rng):
            guesses = super().guess(seen, knowledge, rng)
            for guess in guesses:
                guess.values[::2] = 0
            return guesses

    report = check_attack(Half)
    assert report.passed
    told = outcome(report, "beats chance")
    assert told.outcome == "not applicable"
    assert "0.99" in told.detail


def test_attack_that_needs_many_examples_gets_them():
    class Slow(LogitGradient):
        """Works out how to read a label once it has seen some hundred rows."""

        def guess(self, seen, knowledge, rng):
            (guess,) = super().guess(seen, knowledge, rng)
            if len(guess.rows) > 500:
                return [guess]
            return [dataclasses.replace(guess, values=np.zeros_like(guess.values))]

    assert outcome(check_attack(Slow), "beats chance").outcome == "passed"


def test_attack_that_reads_what_no_undefended_defense_sends_is_told_as_not_examined(monkeypatch):
    monkeypatch.setattr("bench.conformance.check.attack_rules.undefended", lambda: [SAP(eta=None)])

    class Elsewhere(LogitGradient):
        """Reads a channel that is not used here."""

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


# Reports


def test_report_names_each_broken_rule_and_what_to_do():
    report = check_defense(NoSource)
    with pytest.raises(
        AssertionError, match=r"none breaks rules.*\n- names its source: set `source"
    ):
        report.raise_if_failed()
    console = Console(width=100, file=io.StringIO())
    console.print(report.table())
    shown = console.file.getvalue()
    assert "breaks 1 of the rules" in shown
    assert shown.count("failed") == 1
    assert all(result.rule in shown for result in report.results if len(result.rule) < 40)


def test_configured_defense_is_examined_with_its_parameters():
    noisy, clear = check_defense(SAP(eta=50)), check_defense(SAP(eta=None))
    assert noisy.method == "sap eta=50"
    rule = "draws its noise"
    assert outcome(noisy, rule).outcome == "passed"
    assert outcome(clear, rule).outcome == "not applicable"


def test_method_in_a_file_is_examined(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from typing import ClassVar\nfrom defenses.none import NoDefense\n"
        "class Mine(NoDefense):\n    'Mine.'\n    name: ClassVar[str] = 'Not a name'\n"
    )
    for where in (str(file), f"{file}:Mine"):
        assert broken(check_method(where)) == {"has a name of lower-case words joined by '-'"}


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: check_method("sapp"), "Did you mean 'sap'"),
        (lambda: check_method("mine.py"), "no such Python file"),
        (lambda: check_defense(NearestNeighbour), "no subclass of bench.methods.defense.Defense"),
        (lambda: check_attack(SAP()), "no subclass of bench.methods.attack.Attack"),
        (lambda: check_defense(SAP, model="tiny-bart"), "Did you mean 'tiny-bert'"),
    ],
)
def test_what_cannot_be_examined_at_all_is_an_error_and_no_report(call, advice):
    with pytest.raises(LeakboardError, match=advice):
        call()
