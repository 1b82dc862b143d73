"""A twin is a defense with its protection off: it sends what the defense would send without it."""

from __future__ import annotations

import numpy as np
import pytest
from cells import fine_tuned
from released import plan_of, run

from leakboard.bench.methods import registry
from leakboard.defenses.dc import DistanceCorrelation
from leakboard.defenses.dpsgd import DPSGD
from leakboard.defenses.none import NoDefense
from leakboard.defenses.p3eft import P3EFT
from leakboard.defenses.sap import SAP
from leakboard.defenses.sap_cti import SAPCTI

LEARNING = {"learning_rate": 2e-2}


def sent(defense):
    """What crossed the wire, by channel, in order."""
    session, _, _ = fine_tuned(defense, limit=48, train=LEARNING)
    found = {}
    for message in session.wire.transcript().messages:
        found.setdefault(message.channel, []).append(message.values)
    return found


def alike(one, other):
    return one.keys() == other.keys() and all(
        len(a) == len(b) and all(map(np.array_equal, a, b))
        for a, b in ((one[channel], other[channel]) for channel in one)
    )


@pytest.mark.parametrize(
    ("off", "twin"),
    [
        (DistanceCorrelation(weight=0), NoDefense()),
        (SAPCTI(eta=None, share=0.5), SAP(eta=None)),
    ],
    ids=str,
)
def test_a_twin_of_another_name_sends_the_same_message_by_message(off, twin):
    assert alike(sent(off), sent(twin))
    assert not alike(sent(off), sent(type(off)()))  # with its protection on


def test_p3eft_with_one_adapter_and_no_regulariser_is_plain_fine_tuning():
    # Its fields demand two; with one the secret weights are 1, and split gradients add up again.
    off = P3EFT(weight=0).model_copy(update={"adapters": 1})
    ours, plain = sent(off)["activations"], sent(NoDefense())["activations"]
    assert len(ours) == len(plain)
    assert all(np.allclose(a, b, atol=1e-3) for a, b in zip(ours, plain, strict=True))
    assert P3EFT().twins("classification") == (NoDefense(),)


def test_a_language_model_that_is_released_without_protection_is_that_of_none():
    plain, off = (run(plan_of(d, learning_rate=3e-3)) for d in (NoDefense(), DPSGD(epsilon=None)))
    assert plain.utility == off.utility
    assert plain.loss == off.loss


@pytest.mark.parametrize("name", registry.defenses())
def test_every_defense_but_the_references_names_its_twins_and_they_are_undefended(name):
    defense = registry.defense(name)()
    for objective in defense.objectives:
        twins = defense.twins(objective)
        assert bool(twins) != (defense.undefended or name in ("blackout", "untuned"))
        assert all(twin.undefended and objective in twin.objectives for twin in twins)
        assert not any(twin.twins(objective) for twin in twins)


def test_a_twin_keeps_all_parameters_but_the_protection():
    (twin,) = SAP(eta=75, bottom="trainable", bottom_learning_rate=1e-4).twins("classification")
    assert twin.params == {"eta": None, "bottom": "trainable", "bottom_learning_rate": 1e-4}
    assert str(SAP(eta=75).twins("classification")[0]) == "sap eta=none"
