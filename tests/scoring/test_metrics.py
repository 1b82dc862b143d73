"""Estimates, against independent references."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, rankdata

from leakboard.bench.scoring.metrics import mean_ranks, most_frequent_share, share, wilson


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_equals_scipy(hits_of):
    hits, n = hits_of
    known = binomtest(hits, n).proportion_ci(method="wilson")
    assert wilson(hits, n) == pytest.approx((known.low, known.high), abs=1e-6)


@given(st.lists(st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_ranks_equal_scipys_and_ties_share_theirs(values):
    assert mean_ranks(np.array(values)).tolist() == rankdata(values).tolist()


def test_share_is_the_pooled_share_and_examples_without_units_do_not_count():
    got = share(np.array([1, 3, 0, 0]), np.array([2, 3, 5, 0]), 0.25)
    assert got.value == 4 / 10
    assert (got.n, got.chance) == (3, 0.25)
    assert 0 <= got.low < got.value < got.high <= 1
    with pytest.raises(ValueError, match="anything to score"):
        share(np.array([0]), np.array([0]), 0.5)


@pytest.mark.parametrize("right", [0, 1])
def test_unanimous_guesses_have_wilsons_interval_over_examples_and_not_over_tokens(right):
    got = share(np.full(20, 7 * right), np.full(20, 7), 0.1)
    assert (got.low, got.high) == wilson(20 * right, 20)
    assert got.high - got.low > 0.1


def test_interval_covers_the_true_share_about_95_times_in_100():
    rng, covered, rounds = np.random.default_rng(0), 0, 300
    for _ in range(rounds):
        totals = rng.integers(5, 15, size=150)
        own = rng.beta(3, 7, size=150)
        got = share(rng.binomial(totals, own), totals, 0.0)
        covered += got.low <= 0.3 <= got.high
    assert 0.91 <= covered / rounds <= 0.985


def test_interval_is_wider_where_tokens_of_an_example_hang_together():
    rng = np.random.default_rng(1)
    totals = np.full(200, 20)
    apart = share(rng.binomial(20, 0.5, size=200), totals, 0.0)
    together = share(20 * rng.binomial(1, 0.5, size=200), totals, 0.0)
    width = [e.high - e.low for e in (apart, together)]
    naive = np.subtract(*wilson(round(apart.value * 4000), 4000)[::-1])
    assert width[0] == pytest.approx(naive, rel=0.2)
    # Twenty tokens that are one: √20 times as wide.
    assert width[1] / width[0] == pytest.approx(np.sqrt(20), rel=0.2)


def test_interval_is_a_function_of_the_guesses():
    hits, totals = np.arange(30) % 3, np.full(30, 4)
    assert share(hits, totals, 0.1) == share(hits, totals, 0.1)


def test_chance_is_the_share_of_the_most_frequent_candidates():
    values = np.array([4, 4, 4, 9, 9, 1, 0, 0])
    assert most_frequent_share(values) == 3 / 8
    assert most_frequent_share(values, guesses=2) == 5 / 8
    assert most_frequent_share(values, guesses=99) == 1
