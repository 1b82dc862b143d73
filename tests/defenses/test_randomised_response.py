"""Randomised labels lie as often as they claim."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from cells import fine_tuned

from leakboard.defenses.none import NoDefense
from leakboard.defenses.randomised_response import RandomisedResponse, randomised


@pytest.mark.parametrize(("classes", "epsilon"), [(2, 1.0), (3, 0.5), (5, 3.0)])
def test_each_wrong_class_takes_the_place_of_a_label_with_its_probability(classes, epsilon):
    n = 60_000
    labels = np.arange(n) % classes
    found = randomised(labels, classes, epsilon, np.random.default_rng(0))
    wrong = 1 / (math.exp(epsilon) + classes - 1)
    for shift in range(1, classes):
        share = np.mean((found - labels) % classes == shift)
        assert share == pytest.approx(wrong, abs=4 * math.sqrt(wrong / n))
    assert RandomisedResponse(epsilon=epsilon).claim().parameters == {"epsilon": epsilon}


def test_labels_are_drawn_once_and_the_session_keeps_its_own():
    session, _, _ = fine_tuned(RandomisedResponse(epsilon=0.1), limit=64)
    plain, _, _ = fine_tuned(NoDefense(), limit=64)
    assert torch.equal(session.labels, plain.labels)
    assert session.loss != plain.loss
