"""Each broken defense is caught by its rule."""

from __future__ import annotations

from typing import Any, ClassVar
from unittest import mock

import numpy as np
import pytest
import torch
from bypassing import keep_a_trace
from paths import ROOT
from pydantic import ConfigDict
from reports import NoSource, alone, broken, examined, give_names, outcome, rules_of

from leakboard.bench.conformance.check import check_defense
from leakboard.bench.conformance.defense_rules import DefenseRules
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.defending import splitting
from leakboard.bench.defending.splitting import send_once
from leakboard.bench.exchange.predictor import Predictor
from leakboard.bench.exchange.tuned_model import Tuned
from leakboard.bench.exchange.wire import Wire
from leakboard.bench.methods import registry
from leakboard.defenses.dpsgd import DPSGD
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP

FEW = ("eia-nn", "logit-gradient", "prior", "spectral")


@pytest.fixture(autouse=True)
def few_attacks(monkeypatch):
    """Rules are examined here, and no attacks: all of them are tried on each registered defense."""
    few = {name: registry.attacks()[name] for name in FEW}
    monkeypatch.setattr(registry, "attacks", lambda: few)


def test_every_rule_applies_to_a_defense_with_noise_on_what_it_sends_but_those_on_what_it_learns():
    report = check_defense(registry.defense("blackout"))
    assert {r.rule for r in report.results if r.outcome != "passed"} == {BESIDE}
    assert "the same for every example" in outcome(report, BESIDE).detail


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


class TrainsBesideTheWire(SAP):
    """Sends noise, and trains on vectors that never crossed the wire."""

    def fine_tune(self, session):
        def in_clear(session, network, bottom):
            send_once(session, network, bottom)
            ids = session.train.ids
            return ids.with_values(network.embeddings.weight[ids.values].detach())

        with mock.patch.object(splitting, "send_once", in_clear):
            return super().fine_tune(session)


class BesideTheWire(Tuned):
    """Sends what it has to send, and answers by what did not cross the wire."""

    def __init__(self, inner, session):
        self.inner, self.session = inner, session

    def predict(self, tokens, split):
        self.inner.predict(tokens, split)
        wire, self.session.wire = self.session.wire, Wire(frozenset(Channel), {})
        try:
            return self.inner.predict(tokens, split)
        finally:
            self.session.wire = wire


class PredictsBesideTheWire(NoDefense):
    """Sends tokens for a prediction, and looks at its own."""

    def fine_tune(self, session):
        return BesideTheWire(super().fine_tune(session), session)


class SendsNothingToPredict(NoDefense):
    """Sends tokens for training only, and the vendor predicts all the same."""

    def fine_tune(self, session):
        tuned = super().fine_tune(session)
        session.wire = Wire(frozenset(Channel), {})
        return tuned


class UsesATrace(NoDefense):
    """Trains on its own vectors, with a trace of what arrived."""

    def fine_tune(self, session):
        keep_a_trace(session.wire, tokens=False)
        return super().fine_tune(session)


class KeepsTheBetterModel(DPSGD):
    """Releases what it began with, and uses what it trained."""

    def fine_tune(self, session):
        tuned = super().fine_tune(session)
        fresh = session.trainee()
        vector = torch.nn.utils.parameters_to_vector(fresh.trained()).detach()
        session.wire.release(vector, session.settings.epochs, 0)
        return tuned


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


class NoiseOfAnotherSeed(NoDefense):
    """Draws noise with the seed of the network, which PyTorch has."""

    def fine_tune(self, session):
        return Changed(
            super().fine_tune(session), lambda scores: scores + torch.randn(scores.shape)
        )


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


class TakenName(NoDefense):
    """Has the name of another defense."""

    name: ClassVar[str] = "sap"


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


class DefendedTwin(SAP):
    """Takes less noise for none."""

    def twins(self, objective):
        return (SAP(eta=200.0),)


class OtherTwin(SAP):
    """Takes for its twin what sends something else."""

    def twins(self, objective):
        return (NoDefense(),)


TWINS = "names twins that send what it sends, with the protection off"
ENDS = "fine-tunes to the end"
BESIDE = "learns and predicts from what arrives over the wire, and from nothing beside it"
SHAPE = "predicts a finite score of each class for each example"
BROKEN_DEFENSES = {
    Undeclared: {"sends on declared channels only", ENDS},
    TrainsThePublicModel: {"leaves the public model as it was"},
    Unseeded: {"does the same again with the same seeds"},
    AlwaysTheSameNoise: {"draws its noise with the mechanism's seed"},
    NoiseOfAnotherSeed: {"draws its noise with the mechanism's seed"},
    Crashing: {ENDS},
    Mute: {"uses the channels that it declares", "has its bytes counted in each direction"},
    Fewer: {SHAPE, ENDS, "predicts the same whatever the order of the examples"},
    NotANumber: {SHAPE, ENDS},
    ByPlace: {"predicts the same whatever the order of the examples"},
    Misshapen: {"can be attacked by every attack that fits", BESIDE},
    TrainsBesideTheWire: {BESIDE},
    PredictsBesideTheWire: {BESIDE},
    SendsNothingToPredict: {BESIDE},
    UsesATrace: {BESIDE},
    KeepsTheBetterModel: {BESIDE},
    BadName: {"has a name of its own, of lower-case words joined by '-'"},
    TakenName: {"has a name of its own, of lower-case words joined by '-'"},
    NoSource: {"names its source"},
    NoDocstring: {"says in its docstring what it does"},
    NoVersion: {"has a version of 1 or more"},
    NoDefault: {"gives each parameter a default and a docstring"},
    NoParameterDocstring: {"gives each parameter a default and a docstring"},
    NotJson: {"has parameters that survive JSON"},
    TakesAnything: {"refuses unknown parameters"},
    DefendedTwin: {TWINS},
    OtherTwin: {TWINS},
    NoChannels: {"declares the channels on which it sends", ENDS},
}
give_names(BROKEN_DEFENSES)


@pytest.mark.parametrize("defense", BROKEN_DEFENSES, ids=lambda cls: cls.__name__)
def test_broken_defense_is_caught_by_its_rule_and_by_no_other(defense):
    assert broken(check_defense(defense)) == BROKEN_DEFENSES[defense]


@pytest.mark.parametrize(
    ("defense", "rule"),
    [
        pytest.param(cls, rule, id=f"{cls.__name__}-{name}")
        for cls, texts in BROKEN_DEFENSES.items()
        for rule, name in rules_of(DefenseRules).items()
        if rule in texts
    ],
)
def test_rule_by_itself_catches_who_breaks_it(defense, rule):
    assert alone(DefenseRules(defense, "tiny-bert"), rule) == "failed"


def test_a_registered_method_may_be_read_from_its_file():
    copy = registry.load_method(f"{ROOT / 'defenses' / 'sap.py'}:SAP")
    assert copy is not SAP
    assert alone(DefenseRules(copy, "tiny-bert"), "has a name") == "passed"


def test_channel_that_some_parameter_opens_counts_as_used_and_one_that_none_opens_is_told():
    class Promising(SAP):
        """Declares a channel that nothing opens."""

        emits: ClassVar[frozenset[Channel]] = SAP.emits | {Channel.PARAMETERS}

    rule = "uses the channels"
    assert alone(DefenseRules(SAP, "tiny-bert"), rule) == "passed"
    told = examined(DefenseRules(Promising, "tiny-bert"), rule)
    assert told.outcome == "not applicable"
    assert "parameters" in told.detail
    assert "cut-gradients" not in told.detail


def test_defense_that_refuses_every_cut_is_told_as_not_examined_rather_than_broken():
    class Deep(NoDefense):
        """Runs nowhere."""

        name: ClassVar[str] = "deep"

        def skip(self, conditions):
            return "only below the ground"

    report = check_defense(Deep)
    assert report.passed
    assert "only below the ground" in outcome(report, ENDS).detail
