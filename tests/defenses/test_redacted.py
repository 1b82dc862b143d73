"""Redaction alone: ordinary training on what a detector leaves."""

from __future__ import annotations

from trainings import trainings_of

from leakboard.defenses.redacted import Redacted


def test_it_trains_once_and_not_privately_on_all_texts_without_what_is_found():
    (one,), session = trainings_of(Redacted(detector="exact"))
    assert (one.private, one.clear, one.rows, one.release) == (False, set(), None, True)
    assert session.claim is None


def test_what_a_detector_does_not_find_or_is_made_to_miss_is_trained_on():
    (one,), _ = trainings_of(Redacted(detector="patterns"))
    assert not one.masked
    (one,), _ = trainings_of(Redacted(detector="exact", misses=0.5))
    assert 5 < len(one.clear) < 35
