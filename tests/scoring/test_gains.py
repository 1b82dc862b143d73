"""A model is worth something where it is clearly better than before any tuning, or says that it is not."""

from __future__ import annotations

import numpy as np
import pytest
from records import estimate, record

from leakboard.bench.scoring.checks import flags
from leakboard.bench.scoring.gains import gain, keys_not_above_untuned

TRUTH = [0, 1] * 50


def answers(wrong):
    """Predictions of a hundred examples, of which so many are wrong."""
    predicted = [1 - t if i < wrong else t for i, t in enumerate(TRUTH)]
    return {"utility": 1 - wrong / 100, "predictions": {"predicted": predicted, "truth": TRUTH}}


def test_a_model_that_is_clearly_better_than_before_tuning_is_not_flagged_and_another_is():
    before = record("untuned", **answers(50), leaks=[])
    clear, little = record("sap", **answers(20)), record("p3eft", **answers(48))
    assert keys_not_above_untuned([before, clear, little]) == {little.key}
    assert "not-above-untuned" in flags([before, clear, little])[little.key, -1]
    assert (clear.key, -1) not in flags([before, clear, little])
    assert (before.key, -1) not in flags([before, clear, little])


def test_only_the_untuned_model_on_the_same_data_and_seed_counts():
    little = record("p3eft", **answers(48))
    for other in ({"seed": 1}, {"limit": 10}, {"task": "sst2"}, {"model": "other"}):
        assert (
            keys_not_above_untuned([record("untuned", **answers(50), leaks=[], **other), little])
            == set()
        )
    longer = record("untuned", **answers(50), leaks=[], epochs=9)  # it was not trained at all
    assert keys_not_above_untuned([longer, little]) == {little.key}


def test_without_predictions_the_mean_decides():
    before = record("untuned", utility=0.6, leaks=[])
    assert keys_not_above_untuned([before, record("sap", utility=0.61)]) == set()
    worse = record("sap", utility=0.6)
    assert keys_not_above_untuned([before, worse]) == {worse.key}


def test_guessing_the_most_common_class_is_no_gain_over_a_head_that_guesses_another():
    before = record("untuned", leaks=[]).model_copy(update={"utility": estimate(0.3, 0.7)})
    guesses = record("none", utility=0.7)
    assert keys_not_above_untuned([before, guesses]) == {guesses.key}
    assert keys_not_above_untuned([before, record("none", utility=0.71)]) == set()


def test_gains_are_paired_over_the_examples():
    mean, low, high = gain(record("sap", **answers(40)), record("none", **answers(50)))
    half = 1.96 * np.std([1.0] * 10 + [0.0] * 90, ddof=1) / 10
    assert (mean, low, high) == pytest.approx((0.1, 0.1 - half, 0.1 + half))
    text = {"predictions": {"hits": [3, 1], "tokens": [4, 4]}, "utility": 0.5}
    other = {"predictions": {"hits": [1, 1], "tokens": [4, 4]}, "utility": 0.25}
    assert gain(record(**text), record(**other))[0] == pytest.approx(0.25)
    assert gain(record(**text), record(**other))[1] > -0.25
    assert np.isnan(gain(record(), record())[1])
