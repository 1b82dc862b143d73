"""Just fine-tune twice: redacted texts first, the originals with noise after them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cells import make
from released import TEXTS
from trainings import spent, trainings_of

from leakboard.bench.contracts.cell import Plant
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.defending.redaction import all_secrets, missed_share
from leakboard.bench.tasks.task import Span
from leakboard.defenses.jft import JFT, UNKNOWN


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
    assert session.claim.parameters["light_epsilon"] == missed
    assert session.claim.parameters["epsilon"] == defense.epsilon  # no claim is made of it
    assert session.claim.epsilon_of_members is None  # what is missed is trained on without noise


def test_noise_of_phase_one_follows_from_the_budget_at_the_miss_rate_that_was_measured():
    asked = []

    def noise_for(epsilon, delta, rate, steps):
        asked.append((epsilon, delta, rate, steps))
        return 0.41

    defense = JFT(detector="patterns", phase1="light-noise", epsilon=2)  # it finds no names
    (first, _), session = trainings_of(defense, epochs=2, noise_for=noise_for)
    # All forty were missed, and one more is counted.
    assert asked[0] == (2, 0.1 / 40, 8 / 40 * 1.0, 10)
    assert first.sigma == session.claim.parameters["light_sigma"] == 0.41
    assert session.claim.parameters["miss_rate"] == 1
    trainings_of(defense.model_copy(update={"detector": "exact"}), noise_for=noise_for)
    assert asked[2][2] == pytest.approx(8 / 40 * 1 / 41)


def test_a_budget_without_a_miss_rate_is_refused():
    unmarked = replace(
        TEXTS, splits={**TEXTS.splits, "train": replace(TEXTS.splits["train"], secrets=None)}
    )
    with pytest.raises(LeakboardError, match=r"says nothing without a miss rate.*miss_rate: 0\.05"):
        trainings_of(JFT(phase1="light-noise"), unmarked)
    trainings_of(JFT(phase1="light-noise", miss_rate=0.1), unmarked)
    with pytest.raises(LeakboardError, match=r"light: 0\.4"):
        trainings_of(JFT(phase1="light-noise", epsilon=None, sigma=1.0))


def test_a_plan_refuses_a_budget_without_a_miss_rate_where_nothing_tells_it(tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("\n".join(f"A note of nothing in particular, number {i}." for i in range(80)))
    unmarked = {"name": "notes", "path": str(notes)}

    def refused(task=unmarked, canaries="found", copies=(10,), **params):
        defense = JFT(canaries=canaries, **{"phase1": "light-noise"} | params)
        plant = Plant(canaries="My ID is {digits}", copies=copies)
        (planned,) = make(defense, task=task, model="tiny-gpt2", attacks=(), plant=plant).cells
        return planned.skip_reason

    assert refused(canaries="missed") == refused(copies=(0,)) == UNKNOWN
    assert refused(canaries="missed", phase1="direct") is None
    assert refused(canaries="missed", miss_rate=0.3) is None
    assert refused() is None  # measured on the canaries, which nobody moved
    assert refused(task="dialogues", canaries="missed") is None  # it marks its secrets


def test_a_secret_of_which_a_character_is_left_was_missed_and_forced_canaries_do_not_count():
    split = TEXTS.splits["train"].take(np.arange(3))
    whole, half = Span(0, 20, "x"), Span(5, 10, "x")
    assert missed_share(split, [(whole,), (half,), (half, Span(10, 11, "x"))], {}) == 2 / 4
    canary = {0: Span(12, 18, "canary")}
    assert missed_share(split, [(half,)] * 3, canary) == 5 / 5
    assert missed_share(split, [(whole,)] * 3, canary, leave_out=[0]) == 1 / 3
    assert missed_share(replace(split, secrets=None), [()] * 3, {}) is None


def test_hand_checked_texts_hold_no_secret_that_is_known():
    split, canary = TEXTS.splits["train"], Span(12, 18, "canary")
    found = all_secrets(split, {0: canary}, [()] * len(split))
    assert found[0] == (Span(5, 11, "name"), canary)
    assert found[1] == (Span(5, 11, "name"),)


@pytest.mark.parametrize("phase1", ["direct", "manual", "light-noise"])
def test_each_phase_has_settings_of_its_own(phase1):
    own = {"phase1_epochs": 3, "phase1_learning_rate": 0.5, "phase1_batch_size": 4}
    defense = JFT(detector="exact", phase1=phase1, light=0.3, **own)
    (first, second), _ = trainings_of(defense, epochs=2, learning_rate=0.1)
    assert (first.settings.epochs, first.settings.learning_rate) == (3, 0.5)
    assert (first.settings.batch_size, second.settings.batch_size) == (4, 8)
    assert (second.settings.epochs, second.settings.learning_rate) == (2, 0.1)
    alike, _ = trainings_of(JFT(detector="exact", phase1=phase1, light=0.3), epochs=2)
    assert alike[0].settings == alike[1].settings
    assert "phase1_epochs" not in JFT().params  # keys of older records stay
