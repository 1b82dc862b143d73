"""The one-run audit, against hand-worked values and mechanisms of known ε."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm
from sklearn.metrics import roc_auc_score, roc_curve

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.scoring.one_run import auc, audit, ceiling, lower_bound, p_value, tpr_at


def test_all_right_gives_the_binomial_bound_worked_by_hand():
    # P[Bin(m, q) ≥ m] = q^m = 0.05, so q = 0.05^(1/m) and ε = ln(q/(1 − q)).
    for m in (5, 20, 100):
        q = 0.05 ** (1 / m)
        assert lower_bound(m, m, 10 * m) == pytest.approx(math.log(q / (1 - q)), abs=1e-5)


def test_a_part_right_gives_the_bound_at_which_so_many_happen_once_in_twenty_runs():
    # By summation: P[Bin(10, q) ≥ 9] = 10 q⁹ (1 − q) + q¹⁰.
    q = expit(lower_bound(9, 10, 10))
    assert 10 * q**9 * (1 - q) + q**10 == pytest.approx(0.05, abs=1e-6)


def test_bound_grows_with_right_guesses_and_falls_with_delta_and_confidence():
    bounds = [lower_bound(right, 100, 200) for right in range(50, 101)]
    assert bounds[0] == 0
    assert all(a < b for a, b in itertools.pairwise(bounds[10:]))
    with_delta = [lower_bound(95, 100, 200, delta) for delta in (0, 1e-6, 1e-4, 1e-3, 1e-2)]
    assert all(a > b for a, b in itertools.pairwise(with_delta))
    assert with_delta[-1] >= 0
    assert lower_bound(95, 100, 200, confidence=0.99) < lower_bound(95, 100, 200)
    # More examples that were abstained from are more chances for δ.
    assert lower_bound(95, 100, 2000, 1e-4) < lower_bound(95, 100, 100, 1e-4)


def test_no_attack_proves_more_than_the_ceiling_and_a_perfect_one_proves_it():
    assert ceiling(1000, 1.8939e-4) == pytest.approx(4.13, abs=0.005)
    for m, delta in ((100, 0.0), (101, 1e-4), (1000, 1.8939e-4)):
        member = np.arange(m) >= m // 2
        assert audit(member, member, delta) == ceiling(m, delta)
        assert audit(np.arange(m), np.arange(m) > m * 0.55, delta) < ceiling(m, delta)
    # All 20 right, at a third of the doubt: q^20 = 0.05/2, for m/32 is no number of guesses.
    q = 0.025 ** (1 / 20)
    assert ceiling(20) == pytest.approx(math.log(q / (1 - q)), abs=1e-5)
    assert ceiling(4000) > ceiling(1000) > ceiling(1000, 1e-4) > ceiling(1000, 1e-3)


def test_delta_enters_as_in_the_theorem():
    # One guess, right: P[W ≥ 1] = q, and the only term is 2δm·P[W = 0].
    q = expit(0.3)
    assert p_value(1, 1, 7, 0.3, 0.01) == pytest.approx(q + 2 * 0.01 * 7 * (1 - q))
    # Two right of two: the terms are P[W = 1] and P[W ≤ 1]/2, of which the first is larger.
    known = q**2 + 2 * 0.01 * 7 * max(2 * q * (1 - q), (1 - q**2) / 2)
    assert p_value(2, 2, 7, 0.3, 0.01) == pytest.approx(known)


def test_what_delta_allows_is_not_held_against_a_mechanism():
    """One that publishes each example whole with probability δ and else says nothing is (0, δ)-private."""
    rng, delta, m, runs, k = np.random.default_rng(0), 0.02, 40, 400, 3
    above = 0
    for _ in range(runs):
        member = rng.random(m) < 0.5
        published = rng.random(m) < delta
        scores = rng.normal(size=m) + 100 * published * np.where(member, 1, -1)
        above += audit(scores, member, delta, guesses=[k]) > 0
    assert above / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("guesses", [[100], None])
def test_bound_exceeds_the_true_epsilon_of_randomised_response_in_a_twentieth_of_the_runs_at_most(
    epsilon, guesses
):
    rng, m, runs = np.random.default_rng(1), 200, 500
    bounds = np.empty(runs)
    for run in range(runs):
        member = rng.random(m) < 0.5
        told = np.where(rng.random(m) < expit(epsilon), member, ~member)
        bounds[run] = audit(told + 1e-3 * rng.random(m), member, guesses=guesses)
    assert (bounds > epsilon).mean() <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)
    if epsilon:  # and it is no empty bound
        assert np.median(bounds) > 0.5 * epsilon


def test_guessing_at_random_proves_nothing():
    rng = np.random.default_rng(2)
    assert np.median([audit(rng.random(500), rng.random(500) < 0.5) for _ in range(30)]) == 0


def test_trying_many_numbers_of_guesses_costs_confidence():
    scores, member = np.arange(200.0), np.arange(200) >= 100
    one = audit(scores, member, guesses=[100])
    q = 0.025 ** (1 / 200)
    assert (
        one
        > audit(scores, member, guesses=[100, 10])
        == pytest.approx(math.log(q / (1 - q)), abs=1e-5)
    )


def test_auc_and_tpr_of_two_normal_laws_are_the_known_ones():
    rng, shift, n = np.random.default_rng(3), 1.5, 1000
    scores = np.concatenate([rng.normal(shift, size=n), rng.normal(size=n)])
    member = np.arange(2 * n) < n
    for got, known, chance in (
        (auc(scores, member), norm.cdf(shift / math.sqrt(2)), 0.5),
        (tpr_at(0.01, scores, member), norm.sf(norm.isf(0.01) - shift), 0.01),
        (tpr_at(0.001, scores, member), norm.sf(norm.isf(0.001) - shift), 0.001),
    ):
        assert got.low <= known <= got.high
        assert got.low < got.value < got.high
        assert (got.n, got.chance) == (2 * n, chance)
    # The standard error of an AUC is about √(A(1−A)/n)-sized here; the interval is of that order.
    assert 0.02 < auc(scores, member).high - auc(scores, member).low < 0.05


def test_auc_and_tpr_equal_scikit_learns():
    rng = np.random.default_rng(4)
    scores, member = rng.integers(0, 30, size=300), rng.random(300) < 0.4  # many are equal
    assert auc(scores, member).value == pytest.approx(roc_auc_score(member, scores))
    false, true, _ = roc_curve(member, scores, drop_intermediate=False)
    for fpr in (0.01, 0.1, 0.3):
        assert tpr_at(fpr, scores, member).value == pytest.approx(true[false <= fpr].max())


def test_scores_that_part_the_groups_entirely_have_an_interval_all_the_same():
    scores, member = np.arange(40.0), np.arange(40) >= 20
    assert (auc(scores, member).value, auc(-scores, member).value) == (1, 0)
    assert auc(scores, member).low < 0.9
    assert tpr_at(0.01, scores, member).value == 1


@pytest.mark.parametrize("wrong", [False, True])
def test_no_interval_of_groups_that_are_parted_entirely_misses_its_value_by_rounding(wrong):
    # 10 and 7 of them, or 61 alike, are numbers for which sums of quotients are not quite 1.
    for n, out in ((10, 7), (17, 11), (122, 61), (8, 4)):
        member = (np.arange(n) >= out) ^ wrong
        for found in (auc(np.arange(n), member), tpr_at(0.01, np.arange(n), member)):
            assert found.value == (not wrong)
            assert found.low <= found.value <= found.high
            assert found.high - found.low > 0.01


def test_equal_scores_are_chance():
    member = np.arange(40) >= 20
    assert auc(np.zeros(40), member).value == 0.5
    assert tpr_at(0.01, np.zeros(40), member).value == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lower_bound(11, 10, 20), "right ≤ guesses"),
        (lambda: lower_bound(1, 10, 20, delta=1.5), "delta"),
        (lambda: audit(np.zeros(10), np.ones(9)), "one score per example"),
        (lambda: audit(np.zeros(10), np.ones(10), guesses=[6]), "from 1 to 5"),
        (lambda: audit(np.full(10, np.nan), np.ones(10)), "finite"),
        (lambda: auc(np.zeros(10), np.ones(10)), "trained on"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(LeakboardError, match=message):
        call()
