"""Flags: each stands where it should, and nowhere else."""

from __future__ import annotations

import pytest
from records import leak, record

from bench.contracts.channels import Channel
from bench.contracts.claim import Claim
from bench.contracts.threat import Goal
from bench.scoring.checks import FLAGS, flags


def certificate(**fields):
    return record("none", undefended=True, leaks=[leak(1.0, certificate=True, **fields)])


def names(target, *others, index=0):
    return flags([target, *others]).get((target.key, index), ())


def test_attack_with_a_certificate_and_a_plausible_result_has_no_flag():
    assert flags([record(leaks=[leak(0.5)]), certificate()]) == {}


def test_attack_without_a_certificate_is_flagged():
    assert names(record()) == ("uncertified-attack",)
    # A record without the defense on which the attack failed certifies nothing.
    weak = record("none", undefended=True, leaks=[leak(0.5, certificate=False)])
    assert names(record(), weak) == ("uncertified-attack",)


@pytest.mark.parametrize(
    "other",
    [
        certificate(attack="eia-optimise"),
        certificate(params={"steps": 5}),
        certificate(version=2),
        certificate(channel=Channel.TOKENS),
        certificate(goal=Goal.LABEL),
        record("none", task="sst2", leaks=[leak(1.0, certificate=True)]),
        record("none", model="tiny-bert", leaks=[leak(1.0, certificate=True)]),
        record("none", cut=1, leaks=[leak(1.0, certificate=True)]),
    ],
)
def test_certificate_of_something_else_does_not_count(other):
    assert names(record(), other) == ("uncertified-attack",)


def test_certificate_holds_for_other_seeds_parameters_and_sizes():
    other = record("none", seed=7, limit=99, epochs=9, leaks=[leak(1.0, certificate=True)])
    assert names(record(), other) == ()


def test_attribute_certificate_holds_for_its_attribute_only():
    about = {"goal": Goal.ATTRIBUTE, "attribute": "gender"}
    target = record(leaks=[leak(0.6, **about)])
    assert names(target, certificate(**about)) == ()
    assert names(target, certificate(**about | {"attribute": "age"})) == ("uncertified-attack",)


def test_below_chance_needs_the_whole_interval_below():
    assert names(record(leaks=[leak(0.02, chance=0.05)]), certificate()) == ("below-chance",)
    assert names(record(leaks=[leak(0.045, chance=0.05)]), certificate()) == ()


def test_weaker_attack_that_read_nothing_and_beats_a_stronger_one_is_flagged():
    def pair(prior, strong, **fields):
        baseline = leak(prior, attack="prior", **{"channel": None} | fields)
        return record(leaks=[leak(strong, chance=0.0), baseline])

    assert names(pair(0.30, 0.10), certificate()) == ("weaker-beats-stronger",)
    assert names(pair(0.10, 0.30), certificate()) == ()
    assert names(pair(0.115, 0.10), certificate()) == ()  # the intervals overlap
    assert names(pair(0.30, 0.10, view="dev"), certificate()) == ()
    assert names(pair(0.30, 0.10, goal=Goal.LABEL), certificate()) == ()
    assert names(pair(0.30, 0.10, channel=Channel.TOKENS), certificate()) == ()


def test_baseline_itself_is_never_flagged():
    found = flags([record(leaks=[leak(0.01, attack="prior", channel=None, chance=0.5)])])
    assert found == {}


def test_truncated_transcript_is_flagged_on_the_record():
    target = record(dropped_bytes=1)
    assert names(target, certificate(), index=-1) == ("truncated-transcript",)
    assert names(record(), certificate(), index=-1) == ()


def test_leak_on_blackout_is_flagged_on_blackout_only():
    assert names(record("blackout"), certificate()) == ("leak-on-blackout",)
    assert names(record("blackout", leaks=[leak(0.055)]), certificate()) == ()
    assert names(record("sap"), certificate()) == ()


def test_leak_without_a_result_has_no_flag():
    skipped = leak(None, status="skipped", reason="not sent", channel=None)
    assert flags([record(leaks=[skipped, leak(None, status="failed", reason="x")])]) == {}


def claimed(epsilon: float) -> Claim:
    return Claim(guarantee="(ε, δ)", parameters={"epsilon": epsilon}, covers="all")


def test_bound_above_the_claim_is_flagged_and_one_below_is_not():
    def names(bound: float, claim: Claim | None) -> tuple[str, ...]:
        made = record("dpsgd", claim=claim, leaks=[leak(0.9, epsilon=bound)])
        return flags([made, certificate()]).get((made.key, 0), ())

    assert "claim-violated" in names(1.5, claimed(1.0))
    assert "claim-violated" not in names(0.5, claimed(1.0))
    assert "claim-violated" not in names(1.5, None)


def test_every_flag_that_occurs_is_explained():
    found = flags(
        [
            record("blackout", dropped_bytes=1),
            record(
                leaks=[leak(0.1, chance=0.5, told=[3, 0]), leak(0.3, attack="prior", channel=None)]
            ),
            record("dpsgd", claim=claimed(1.0), leaks=[leak(0.9, epsilon=1.5)]),
        ]
    )
    assert {name for group in found.values() for name in group} == set(FLAGS)
