"""Certificates: how well an attack works on the undefended twin, and what that is valid for."""

from __future__ import annotations

import pytest
from records import estimate, leak, record

from leakboard.bench.contracts.record import Estimate, Leak
from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.bench.scoring.certificates import advantage_low, strengths

OPEN = {"eta": None}


def strength(target, *others):
    return strengths([target, *others]).get((target.key, 0))


def twin(success=0.95, defense="sap", params=None, seed=0, **fields):
    about = {
        name: fields.pop(name)
        for name in ("limit", "epochs", "task", "model", "cut")
        if name in fields
    }
    made = leak(success, **fields)
    params = OPEN if params is None else params
    return record(defense, params, seed, undefended=True, leaks=[made], **about)


def test_strength_is_the_lower_end_of_the_advantage_on_the_twin():
    # success 0.95 ± 0.01, chance 0.05
    assert strength(record(), twin()) == pytest.approx((0.94 - 0.05) / 0.95)


def test_an_attack_that_works_on_four_classes_without_reaching_ninety_percent_is_certified():
    told = {"chance": 0.25, "attack": "logreg", "goal": Goal.LABEL, "channel": Channel.ACTIVATIONS}
    target = record("dc", {"weight": 0.5}, leaks=[leak(0.3, **told)])
    assert strength(target, twin(0.88, "none", {}, **told)) == pytest.approx((0.87 - 0.25) / 0.75)


def test_strength_counts_on_the_scale_of_the_largest_success():
    bits = leak(12.0, "canary-exposure", Goal.MEMORISATION, 1.5, ceiling=20.0)
    assert advantage_low(bits) == pytest.approx((11.99 - 1.5) / 18.5)
    assert advantage_low(leak(1.0, chance=1.0)) is None  # guessing finds all


def test_what_the_untrained_model_tells_certifies_nothing():
    # Topics that the untrained model clusters at 0.87 are no work of the attack's on training.
    told = {"chance": 0.25, "attack": "kmeans", "goal": Goal.LABEL, "channel": Channel.ACTIVATIONS}
    target = record("p3eft", leaks=[leak(0.87, **told)])
    plain = record("none", undefended=True, leaks=[leak(0.88, floor=estimate(0.87, 0.25), **told)])
    assert strength(target, plain) == pytest.approx((0.87 - 0.87) / 0.13)
    assert advantage_low(leak(0.95, floor=estimate(0.1, 0.25), **told)) == pytest.approx(
        0.69 / 0.75
    )
    assert advantage_low(leak(0.95, floor=estimate(1.0, 0.25), **told)) is None


def test_a_lone_canary_is_measured_by_what_a_secret_that_was_never_seen_reaches():
    # Its interval is the whole range; one in forty secrets that were never seen exceeds 5.32 bits.
    def lone(bits: float) -> Leak:
        success = Estimate(value=bits, low=0.0, high=19.93, n=1, chance=1.44)
        found = leak(1.0, "canary-exposure", Goal.MEMORISATION, ceiling=19.93)
        return found.model_copy(update={"success": success, "metric": "exposure"})

    assert advantage_low(lone(5.3)) < 0 < advantage_low(lone(5.4))
    several = lone(15.0).model_copy(
        update={"success": Estimate(value=15, low=0.0, high=19.93, n=2, chance=1.44)}
    )
    assert advantage_low(several) < 0


def test_only_the_undefended_twin_certifies_and_not_just_any_undefended_cell():
    assert strength(record(), twin(defense="none", params={})) is None
    assert strength(record(), twin(defense="dc", params={"weight": 0})) is None
    trainable = record("sap", {"eta": 75.0, "bottom": "trainable"})
    assert strength(trainable, twin()) is None
    assert strength(trainable, twin(params=OPEN | {"bottom": "trainable"})) is not None
    # Its own success elsewhere is none of its twin's.
    assert strength(record(), record("sap", {"eta": 110.0}, leaks=[leak(0.99)])) is None


@pytest.mark.parametrize(
    ("defense", "params", "by", "open_"),
    [
        ("sap-cti", {"eta": 75.0}, "sap", OPEN),
        ("sap-cti", {"eta": 75.0}, "sap-cti", OPEN),
        ("p3eft", {"weight": 0.3}, "none", {}),
        ("dc", {"weight": 0.5}, "none", {}),
        ("frozen", {}, "none", {}),
        ("dpsgd", {"epsilon": 3.0}, "dpsgd", {"epsilon": None}),
        ("dpsgd", {"sigma": 1.0, "epsilon": None}, "none", {}),
        ("jft", {"canaries": "missed"}, "none", {}),
        ("crt", {}, "dpsgd", {"epsilon": None}),
        ("redacted", {}, "dpsgd", {"epsilon": None}),
    ],
)
def test_each_defense_is_certified_by_what_it_is_with_its_protection_off(
    defense, params, by, open_
):
    assert strength(record(defense, params), twin(defense=by, params=open_)) is not None


@pytest.mark.parametrize(
    "other",
    [
        {"attack": "eia-optimise"},
        {"params": {"steps": 5}},
        {"channel": Channel.TOKENS},
        {"goal": Goal.LABEL},
        {"task": "sst2"},
        {"model": "tiny-bert"},
        {"cut": 1},
        {"attribute": "age"},
        {"version": 2},
    ],
)
def test_certificate_of_something_else_does_not_count(other):
    params = other.pop("params", None)
    made = twin(**other)
    if params:
        made = record("sap", OPEN, undefended=True, leaks=[leak(0.95, params=params)])
    assert strength(record(), made) is None


def test_seeds_of_the_twin_count_together():
    seeds = [twin(success, seed=seed) for seed, success in enumerate((0.9, 0.5, 0.4))]
    assert strength(record(seed=9), *seeds) == pytest.approx((0.6 - 0.01 - 0.05) / 0.95)


def test_the_twin_trained_alike_counts_before_one_on_which_the_attack_works_better():
    better = twin(0.99, limit=6000)
    assert strength(record(), twin(0.4), better) == pytest.approx((0.39 - 0.05) / 0.95)
    assert strength(record(), better) == pytest.approx(
        (0.98 - 0.05) / 0.95
    )  # where there is no other


def test_where_the_protection_is_off_a_cell_certifies_itself():
    assert strength(twin(0.3)) == pytest.approx((0.29 - 0.05) / 0.95)


def test_first_view_of_the_twin_counts_as_it_does_in_tables():
    made = record("sap", OPEN, undefended=True, leaks=[leak(0.2), leak(0.95, view="dev")])
    assert strength(record(), made) == pytest.approx((0.19 - 0.05) / 0.95)


def test_unknown_methods_are_certified_by_what_says_that_it_is_undefended():
    target = record("my-noise", {"sigma": 0.3})
    assert strength(target, twin(defense="my-noise", params={"sigma": 0.0})) is not None
    assert strength(target, twin(defense="none", params={})) is None
    defended = record("my-noise", {"sigma": 0.1}, leaks=[leak(0.99)])
    assert strength(target, defended) is None


def test_models_of_attackers_and_baselines_have_no_certificate():
    shadow = twin()
    shadow = shadow.model_copy(update={"cell": shadow.cell.model_copy(update={"shadow": 0})})
    assert strength(record(), shadow) is None
    prior = record(leaks=[leak(0.1, "prior", channel=None)])
    assert strength(prior, twin(attack="prior", channel=None)) is None


def test_a_record_that_says_it_is_certified_is_read_and_the_word_dropped():
    told = leak(0.5).model_dump() | {"certificate": True}
    assert Leak.model_validate(told) == leak(0.5)
