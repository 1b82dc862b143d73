"""Metrics of numbers and of several labels, against SciPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import f1_score

from leakboard.bench.scoring.targets import (
    label_fields,
    number_fields,
    target_difference,
    target_estimate,
)


def numbers(n=200, noise=0.8, seed=0):
    """Predicted and true numbers; many of the true ones are equal."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 6, n).astype(float)
    return truth + noise * rng.standard_normal(n), truth


def flags(n=150, c=70, wrong=0.1, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.random((n, c)) < np.linspace(0, 0.5, c)
    return truth ^ (rng.random((n, c)) < wrong), truth


def test_correlations_are_those_of_scipy_in_the_sample_and_in_each_resample():
    predicted, truth = numbers()
    fields = number_fields(predicted, truth, None)
    assert fields["utility_metric"] == "Spearman"
    assert fields["utility"].value == pytest.approx(spearmanr(predicted, truth).statistic, abs=1e-9)
    assert fields["measures"]["Pearson"].value == pytest.approx(
        pearsonr(predicted, truth).statistic
    )
    weights = np.random.default_rng(1).multinomial(len(truth), np.full(len(truth), 1 / len(truth)))
    rows = np.repeat(np.arange(len(truth)), weights)
    drawn = number_fields(predicted[rows], truth[rows], "Spearman")
    assert drawn["utility"].value == pytest.approx(
        spearmanr(predicted[rows], truth[rows]).statistic, abs=1e-9
    )


def test_intervals_of_a_correlation_cover_that_of_the_population():
    whole = spearmanr(*numbers(20_000, seed=9)).statistic
    inside = 0
    for seed in range(60):
        found = number_fields(*numbers(80, seed=seed), None)["utility"]
        inside += found.low <= whole <= found.high
    assert 52 <= inside <= 60


def test_a_constant_prediction_has_no_correlation():
    _, truth = numbers()
    fields = number_fields(np.full(len(truth), 0.123456789), truth, None)
    for found in (fields["utility"], fields["measures"]["Pearson"]):
        assert (found.value, found.low, found.high, found.chance) == (0, 0, 0, 0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_f1_of_several_labels_is_that_of_scikit_learn_also_beyond_62_labels():
    predicted, truth = flags()
    fields = label_fields(predicted, truth, None)
    assert fields["utility_metric"] == "micro-F1"
    assert fields["utility"].value == pytest.approx(f1_score(truth, predicted, average="micro"))
    used = (predicted | truth).any(0)
    expected = f1_score(truth[:, used], predicted[:, used], average="macro")
    assert fields["measures"]["macro-F1"].value == pytest.approx(expected)
    assert fields["utility"].n == len(truth)


def test_chance_is_the_best_score_of_always_naming_the_same_labels():
    _, truth = flags(c=6)
    truth[:, 5] |= np.arange(len(truth)) % 4 > 0
    chance = label_fields(truth, truth, None)["utility"].chance
    every = [
        f1_score(
            truth, np.tile([bool(s >> i & 1) for i in range(6)], (len(truth), 1)), average="micro"
        )
        for s in range(1, 64)
    ]
    assert chance == pytest.approx(max(every))


@pytest.mark.parametrize("metric", ["Spearman", "Pearson"])
def test_a_paired_difference_is_that_of_the_values_and_narrower_than_either_interval(metric):
    predicted, truth = numbers()
    worse = predicted + 0.3 * np.random.default_rng(5).standard_normal(len(truth))
    one, two = (number_fields(each, truth, None)["predictions"] for each in (predicted, worse))
    mean, low, high = target_difference(metric, one, two)
    alone = target_estimate(metric, one)
    assert mean == pytest.approx(alone.value - target_estimate(metric, two).value)
    assert low <= mean <= high
    assert high - low < alone.high - alone.low
    assert target_difference(metric, one, one) == (0, 0, 0)


def test_a_metric_that_does_not_fit_is_refused():
    raw = number_fields(*numbers(), None)["predictions"]
    with pytest.raises(ValueError, match="micro-F1 is no metric of these predictions"):
        target_estimate("micro-F1", raw)
