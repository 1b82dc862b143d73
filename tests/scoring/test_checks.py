"""Flags: each stands where it should, and nowhere else."""

from __future__ import annotations

from records import leak, record

from bench.contracts.channels import Channel
from bench.contracts.claim import Claim
from bench.contracts.threat import Goal
from bench.scoring.checks import FLAGS, flags


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
