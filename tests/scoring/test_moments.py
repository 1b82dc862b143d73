"""Label leakage over training: measures against independent ones, intervals, chance."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.bench.contracts.transcript import Guess
from leakboard.bench.scoring import moments
from leakboard.bench.scoring.metrics import resamples
from leakboard.bench.scoring.moments import Trial, auc, balanced, matching, permuted, scored


def look(values, labels, moment=0, part=0, measure="auc", null=None, step=None):
    """A look at all rows of a split."""
    values, labels = np.asarray(values), np.asarray(labels)
    rows = np.arange(len(labels))
    guess = Guess(
        Goal.LABEL,
        Channel.ACTIVATIONS,
        "train",
        rows,
        values,
        measure=measure,
        moment=moment,
        part=part,
    )
    null = permuted(labels) if null is None else null
    return Trial(guess, 10 * moment if step is None else step, values, labels, null)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_auc_is_that_of_sklearn_without_its_sign(classes, ties):
    rng = np.random.default_rng(classes)
    labels = rng.integers(classes, size=(6, 40))
    values = rng.integers(4, size=40) if ties else rng.standard_normal(40)
    for row, found in zip(labels, auc(values, labels, classes), strict=True):
        each = [roc_auc_score(row == c, values) for c in range(classes)]
        assert found == pytest.approx(np.mean([max(a, 1 - a) for a in each]))


@pytest.mark.parametrize("clusters", [2, 3, 4])
def test_matching_is_the_best_of_all_assignments(clusters):
    rng = np.random.default_rng(0)
    labels, values = rng.integers(3, size=(5, 30)), rng.integers(clusters, size=30)
    for row, found in zip(labels, matching(values, labels, 3), strict=True):
        names = [*range(3), *[-1] * max(0, clusters - 3)]
        best = max(
            np.mean(np.array(given)[values] == row)
            for given in itertools.permutations(names, int(values.max()) + 1)
        )
        assert found == pytest.approx(best)


@pytest.mark.parametrize("classes", [2, 3])
def test_balanced_accuracy_is_that_of_sklearn(classes):
    rng = np.random.default_rng(0)
    labels, values = rng.integers(classes, size=(5, 30)), rng.integers(classes, size=30)
    expected = [balanced_accuracy_score(row, values) for row in labels]
    assert balanced(values, labels, classes) == pytest.approx(expected)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("turned", [1, -1])
def test_weighted_auc_is_that_of_the_rows_resampled_with_the_sign_of_the_whole(classes, turned):
    rng = np.random.default_rng(1)
    labels = np.arange(60) % classes
    values = turned * np.round(labels + rng.standard_normal(60), 1)  # with ties
    one = look(values, labels)
    weights = resamples(60)
    found = moments._auc_resampled(one, classes, weights)
    for at in range(20):
        drawn = np.repeat(np.arange(60), weights[at])
        each = []
        for c in range(1, 2) if classes == 2 else range(classes):
            whole = roc_auc_score(labels == c, values)
            area = roc_auc_score(labels[drawn] == c, values[drawn])
            each.append(area if whole >= 0.5 else 1 - area)
        assert found[at] == pytest.approx(np.mean(each))


def test_interval_of_a_weak_ranking_reaches_below_one_half():
    rng = np.random.default_rng(0)
    labels = np.arange(100) % 2
    worst, _ = scored([look(rng.standard_normal(100), labels)], 2)
    assert worst["success"].low < 0.5 <= worst["success"].value


def noise(seed, measure, moments_=20, parts=4, n=200):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    rng.shuffle(labels)
    null, looks = permuted(labels), []
    for moment, part in itertools.product(range(moments_), range(parts)):
        values = rng.standard_normal(n) if measure == "auc" else rng.integers(2, size=n)
        looks.append(look(values, labels, moment, part, measure, null))
    return looks


@pytest.mark.parametrize("measure", ["auc", "matching", "balanced accuracy"])
def test_the_worst_of_many_looks_at_noise_does_not_clear_its_chance(measure):
    gaps = []
    for seed in range(5):
        worst, last = scored(noise(seed, measure), 2)
        assert worst["success"].low <= worst["success"].chance
        # Guessing once would leave a luckless 0.5 as chance, and the best of eighty looks above it.
        assert worst["success"].chance > last["success"].chance > 0.5
        gaps.append(worst["success"].value - worst["success"].chance)
    assert abs(np.mean(gaps)) < 0.02


@pytest.mark.parametrize("measure", ["auc", "matching", "balanced accuracy"])
def test_a_leak_at_one_moment_in_one_part_is_found_there_and_nowhere_else(measure):
    looks = noise(0, measure)
    at = 4 * 7 + 2
    truth = looks[at].truth
    values = np.where(np.random.default_rng(0).random(200) < 0.9, truth, 1 - truth)
    looks[at] = look(values, truth, 7, 2, measure, looks[at].null)
    worst, last = scored(looks, 2)
    (found,) = [point for point in worst["curve"] if point.success.low > worst["success"].chance]
    assert (found.step, found.part, worst["step"], last["step"]) == (70, 2, 70, 190)
    assert worst["success"].value == found.success.value > 0.8
    assert last["success"].value < 0.65
    assert (worst["raw"]["truth"], worst["units"]) == (truth.tolist(), 200)


def test_moments_without_one_of_the_classes_are_left_out_and_counted():
    labels, values = np.arange(20) % 2, np.arange(20.0)
    one_class = look(values, np.zeros(20, int), 1)
    worst, last = scored([look(values, labels, 0), one_class, look(values, labels, 2)], 2)
    assert (worst["undefined"], last["undefined"], len(worst["curve"])) == (1, 1, 2)
    assert last["step"] == 20
    assert scored([one_class], 2) == []


def test_success_can_be_computed_again_from_what_is_kept():
    rng = np.random.default_rng(0)
    labels = np.arange(80) % 2
    values = labels + rng.standard_normal(80)
    for measure, kept in (("auc", values), ("matching", (values > 0.5).astype(int))):
        worst, _ = scored([look(kept, labels, measure=measure)], 2)
        guess, truth = np.array(worst["raw"]["guess"]), np.array(worst["raw"]["truth"])
        again = moments.MEASURES[measure](guess, truth[None], 2)[0]
        assert again == pytest.approx(worst["success"].value)
