"""Metrics of classifiers, against scikit-learn, and which of them is the utility."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, matthews_corrcoef

from leakboard.bench.scoring.classes import class_estimate, class_fields, paired_difference


def drawn(n=400, rare=0.02, seed=0):
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < rare).astype(np.int64)
    return np.where(rng.random(n) < 0.05, 1 - truth, truth), truth


@pytest.mark.filterwarnings("ignore:A single label")
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=60),
)
@settings(max_examples=60, deadline=None)
def test_macro_f1_and_mcc_are_those_of_scikit_learn(pairs):
    predicted, truth = np.array(pairs, np.int64).T
    for metric, other in (
        ("macro-F1", lambda: f1_score(truth, predicted, average="macro", zero_division=0.0)),
        ("MCC", lambda: matthews_corrcoef(truth, predicted)),
    ):
        found = class_estimate(metric, predicted, truth)
        assert found.value == pytest.approx(other(), abs=1e-12)
        assert found.low - 1e-9 <= found.high
        assert found.n == len(pairs)


def test_the_most_frequent_class_alone_has_high_accuracy_and_no_macro_f1_above_chance():
    _, truth = drawn()
    fields = class_fields(np.zeros_like(truth), truth, None)
    assert fields["utility_metric"] == "macro-F1"
    assert fields["utility"].value == pytest.approx(fields["utility"].chance)
    assert fields["measures"]["accuracy"].value > 0.95
    assert fields["measures"]["MCC"].value == 0


@pytest.mark.parametrize(
    ("rare", "given_", "expected"),
    [
        (0.02, None, "macro-F1"),
        (0.4, None, "accuracy"),
        (0.02, "MCC", "MCC"),
        (0.02, "accuracy", "accuracy"),
    ],
)
def test_the_utility_is_the_chosen_metric_else_by_the_share_of_the_rarest_class(
    rare, given_, expected
):
    predicted, truth = drawn(rare=rare)
    fields = class_fields(predicted, truth, given_)
    assert fields["utility_metric"] == expected
    assert {expected, *fields["measures"]} == {"accuracy", "macro-F1", "MCC"}


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    whole_predicted, whole_truth = drawn(200_000, 0.2)
    right = f1_score(whole_truth, whole_predicted, average="macro")
    rng, covered = np.random.default_rng(1), 0
    for _ in range(60):
        rows = rng.integers(len(whole_truth), size=300)
        found = class_estimate("macro-F1", whole_predicted[rows], whole_truth[rows])
        covered += found.low <= right <= found.high
    assert covered >= 50


def test_a_paired_difference_is_that_of_the_values_and_its_interval_of_pairs():
    predicted, truth = drawn(rare=0.3)
    worse = np.where(np.arange(len(truth)) % 10 == 0, 1 - truth, predicted)
    for metric in ("macro-F1", "MCC"):
        mean, low, high = paired_difference(metric, predicted, worse, truth)
        one, two = (class_estimate(metric, each, truth).value for each in (predicted, worse))
        assert mean == pytest.approx(one - two)
        assert 0 < low < mean < high
        assert paired_difference(metric, worse, worse, truth) == (0, 0, 0)
