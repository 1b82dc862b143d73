"""What a guarantee promises to somebody who has several examples."""

from __future__ import annotations

from math import exp

import pytest

from leakboard.bench.contracts.threat import Claim


def claim(epsilon=1.0, delta=1e-5, **more):
    told = {"guarantee": "(ε, δ)-DP of examples", "covers": "all", "unit": "example"} | more
    return Claim(parameters={"epsilon": epsilon, "delta": delta, "sigma": 2.0}, **told)


def test_what_is_promised_to_an_author_is_that_of_a_group_of_examples():
    told = claim(profile=((1.0, 1e-5), (0.5, 1e-3))).of_authors(4)
    # δ of a group: each of four steps from one dataset to the next adds its own, e^ε larger than the last.
    delta = sum(1e-5 * exp(i) for i in range(4))
    assert told.parameters == pytest.approx({"epsilon": 4.0, "delta": delta, "sigma": 2.0})
    assert told.profile[0] == pytest.approx((4.0, delta))
    assert told.profile[1] == pytest.approx((2.0, sum(1e-3 * exp(i / 2) for i in range(4))))
    assert (told.unit, told.epsilon_of_members) == ("author", pytest.approx(4.0))
    assert "authors of at most 4 examples" in told.guarantee


def test_one_example_of_an_author_is_promised_what_an_example_is():
    told = claim().of_authors(1)
    assert told.parameters == pytest.approx(claim().parameters)


def test_nothing_is_promised_where_delta_would_reach_one():
    assert claim(epsilon=3.0, delta=1e-3).of_authors(4) is None
    assert claim(epsilon=300.0).of_authors(4) is None
    told = claim(profile=((1.0, 1e-5), (0.1, 0.4))).of_authors(4)
    assert [epsilon for epsilon, _ in told.profile] == [4.0]


def test_what_is_promised_of_a_vector_says_nothing_of_authors():
    other = Claim(guarantee="dχ-privacy", parameters={"eta": 75.0}, covers="a token", unit="vector")
    assert other.of_authors(4) == other
    assert other.epsilon_of_members is None
