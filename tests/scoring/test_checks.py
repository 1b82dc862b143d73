"""Flags: each stands where it should, and nowhere else."""

from __future__ import annotations

import pytest
from records import leak, record

from leakboard.bench.contracts.record import Estimate
from leakboard.bench.contracts.threat import Channel, Claim, Goal
from leakboard.bench.scoring.checks import FLAGS, flags, provable


def certificate(**fields):
    return record("sap", {"eta": None}, undefended=True, leaks=[leak(1.0, **fields)])


def names(target, *others, index=0):
    return flags([target, *others]).get((target.key, index), ())


def failing(**fields):
    return record(leaks=[leak(0.055, **fields)])


def test_attack_that_fails_is_flagged_where_it_has_no_certificate():
    assert names(failing()) == ("uncertified-attack",)
    assert names(failing(), certificate()) == ()
    weak = record("sap", {"eta": None}, undefended=True, leaks=[leak(0.2)])
    assert names(failing(), weak) == ("uncertified-attack",)


def test_attack_that_succeeds_needs_no_certificate():
    assert names(record(leaks=[leak(0.061)])) == ()  # its interval begins above chance


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
    # It has no twin: that nothing is found there is no evidence of privacy.
    assert names(record("blackout", leaks=[leak(0.055)])) == ("uncertified-attack",)
    assert names(record("sap"), certificate()) == ()


def test_leak_without_a_result_has_no_flag():
    skipped = leak(None, status="skipped", reason="not sent", channel=None)
    assert flags([record(leaks=[skipped, leak(None, status="failed", reason="x")])]) == {}


def claimed(epsilon: float, unit: str | None = "example", **fields) -> Claim:
    given = {"guarantee": "(ε, δ)", "covers": "all"} | fields
    return Claim(parameters={"epsilon": epsilon}, unit=unit, **given)


def of_audit(claim: Claim | None, bound: float, **fields) -> tuple[str, ...]:
    made = record("dpsgd", claim=claim, leaks=[leak(0.9, epsilon=bound, **fields)])
    return flags([made, certificate()]).get((made.key, 0), ())


def test_only_a_claim_about_whole_examples_is_violated_by_guesses_about_members():
    assert "claim-violated" in of_audit(claimed(1.0), 1.5)
    for unit in ("label", "secret", "vector", None):
        assert of_audit(claimed(1.0, unit), 1.5) == of_audit(claimed(99.0, unit), 1.5) == ()


def test_claims_of_older_records_are_told_apart_by_their_words():
    words = "(ε, δ)-differential privacy of single training examples, by Opacus's PRV accountant"
    every = "every token of each example; a text that occurs k times has kε"
    some = "what the detector finds, in phase 2; what it misses is not covered in phase 1"
    assert "claim-violated" in of_audit(claimed(1.0, None, guarantee=words, covers=every), 1.5)
    assert of_audit(claimed(1.0, None, guarantee=words, covers=some), 1.5) == ()
    labels = claimed(1.0, None, guarantee="ε-label differential privacy")
    assert of_audit(labels, 1.5) == ()


def test_an_audit_that_a_perfect_attacker_would_not_fail_is_flagged():
    assert of_audit(claimed(8.0), 0.1, epsilon_ceiling=7.9) == ("cannot-fail",)
    assert of_audit(claimed(8.0), 0.1, epsilon_ceiling=8.1) == ()
    assert of_audit(None, 0.1, epsilon_ceiling=1.0) == ()
    assert of_audit(claimed(8.0, "label"), 0.1, epsilon_ceiling=7.9) == ()


def test_the_ceiling_of_an_older_record_follows_from_its_coins_and_its_delta():
    whole = {"guarantee": "(ε, δ)", "covers": "all", "unit": "example"}
    claim = Claim(parameters={"epsilon": 4.5, "delta": 1.8939e-4}, **whole)
    audited = leak(0.9, epsilon=0.1).model_copy(update={"units": 1000})
    made = record("dpsgd", claim=claim, leaks=[audited])
    assert round(provable(made, audited), 2) == 4.13
    assert flags([made, certificate()])[made.key, 0] == ("cannot-fail",)
    no_claim = made.model_copy(update={"claim": None})
    assert provable(no_claim, audited) == pytest.approx(5.5, abs=0.005)
    assert provable(made, leak(0.9)) is None
    for forged in (0, 10**12):
        assert provable(made, audited.model_copy(update={"units": forged})) is None


def test_bound_above_the_claim_is_flagged_and_one_below_is_not():
    assert "claim-violated" in of_audit(claimed(1.0), 1.5)
    assert "claim-violated" not in of_audit(claimed(1.0), 0.5)
    assert "claim-violated" not in of_audit(None, 1.5)


def beside_the_wire():
    unnoticed = Estimate(value=0.5, low=0.4, high=0.6, n=90, chance=0.5)
    return record("none", seed=1).model_copy(update={"wire_check": unnoticed})


def tuned_on_private():
    made = record("dpsgd", seed=1, claim=claimed(1.0))
    tuned = made.provenance.model_copy(update={"trials": ("0" * 16,), "tuned_on": "private"})
    return made.model_copy(update={"provenance": tuned})


def test_every_flag_that_occurs_is_explained():
    found = flags(
        [
            record("blackout", dropped_bytes=1),
            record("untuned", leaks=[]),
            record(
                leaks=[leak(0.1, chance=0.5, told=[3, 0]), leak(0.3, attack="prior", channel=None)]
            ),
            record(
                "dpsgd", claim=claimed(1.0), leaks=[leak(0.9, epsilon=1.5, epsilon_ceiling=0.9)]
            ),
            beside_the_wire(),
            tuned_on_private(),
        ]
    )
    assert {name for group in found.values() for name in group} == set(FLAGS)
