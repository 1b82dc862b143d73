"""CRT trains by DP-SGD, on texts without their secrets, of which each is there once."""

from __future__ import annotations

from trainings import TWICE, trainings_of

from leakboard.defenses.crt import CRT


def test_it_trains_once_and_privately_on_redacted_texts_of_which_each_is_there_once():
    (one,), session = trainings_of(CRT(detector="exact", epsilon=8), TWICE)
    assert one.private
    assert not one.clear
    assert one.rows == list(range(0, 16, 2))  # the other one of each pair is the same once masked
    assert one.sigma == session.claim.parameters["sigma"] > 0
    assert session.claim.parameters["epsilon"] == 8


def test_what_its_detector_does_not_find_is_trained_on_as_it_is():
    (one,), _ = trainings_of(CRT(detector="patterns", epsilon=8), TWICE)
    assert one.clear == set(range(16))
    assert one.rows == list(range(16))
