"""Just fine-tune twice: redacted texts first, the originals with noise after them."""

from __future__ import annotations

from released import TEXTS
from trainings import spent, trainings_of

from bench.defending.redaction import all_secrets
from bench.tasks.spans import Span
from defenses.jft import JFT


def test_phase_one_is_shown_redacted_texts_and_hands_out_nothing_and_phase_two_all_as_they_are():
    (first, second), session = trainings_of(JFT(detector="exact", epsilon=8))
    assert (first.private, first.clear, first.rows, first.release) == (False, set(), None, False)
    assert second.private
    assert not second.masked
    assert second.rows == list(range(40))
    assert second.sigma == session.claim.parameters["sigma"]


def test_phase_one_with_a_little_noise_is_shown_redacted_texts_too():
    (first, second), _ = trainings_of(JFT(detector="exact", phase1="light-noise", light=0.3))
    assert (first.private, first.clear, first.release) == (True, set(), False)
    assert (first.sigma, first.rows) == (0.3, list(range(40)))
    assert second.private
    assert not second.masked


def test_a_person_checks_a_share_where_every_known_secret_is_masked_found_or_not():
    manual = JFT(detector="patterns", phase1="manual", checked=0.25)  # it finds no names
    (first, second), _ = trainings_of(manual)
    assert (first.private, first.clear, first.release) == (False, set(), False)
    assert len(first.rows) == 10
    assert first.rows == sorted(set(first.rows)) != list(range(10))
    assert not second.masked


def test_estimate_of_phase_one_counts_missed_secrets_alone():
    defense = JFT(detector="exact", phase1="light-noise", light=0.6, miss_rate=0.05)
    _, session = trainings_of(defense, epochs=2)
    missed = spent(0.6, 8 / 40 * 0.05, 10, 0.1 / 40)
    assert f"an estimate: ε = {missed:.3g} in phase 1" in session.claim.covers
    assert session.claim.parameters["epsilon"] == defense.epsilon  # no claim is made of it
    assert session.claim.epsilon_of_examples is None  # what is missed is trained on without noise


def test_hand_checked_texts_hold_no_secret_that_is_known():
    split, canary = TEXTS.splits["train"], Span(12, 18, "canary")
    found = all_secrets(split, {0: canary}, [()] * len(split))
    assert found[0] == (Span(5, 11, "name"), canary)
    assert found[1] == (Span(5, 11, "name"),)
