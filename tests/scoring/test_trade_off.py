"""Audits by a whole curve of privacy, against hand-worked values and mechanisms of a known one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm

from leakboard.bench.contracts.threat import Claim
from leakboard.bench.scoring.one_run import audit, ceiling, claim_terms, exceeds
from leakboard.bench.scoring.trade_off import lower_bound

DELTA = 1e-5


def delta_of(epsilon: float, mu: float) -> float:
    """Balle and Wang 2018, theorem 5: of a Gaussian mechanism whose two outputs are μ deviations apart."""
    ends = -epsilon / mu + mu / 2, -epsilon / mu - mu / 2
    return norm.cdf(ends[0]) - math.exp(epsilon) * norm.cdf(ends[1])


def gaussian(epsilon: float) -> tuple[float, tuple[tuple[float, float], ...]]:
    """μ and the profile of the Gaussian mechanism of this ε at δ."""
    mu = brentq(lambda mu: delta_of(epsilon, mu) - DELTA, 1e-3, 10)
    larger = [d for d in np.geomspace(DELTA, 0.5, 12)[1:] if delta_of(0, mu) > d]
    pairs = [(brentq(lambda e, d=d: delta_of(e, mu) - d, 0, 60), d) for d in larger]
    return mu, ((epsilon, DELTA), *pairs)


def bounds_of(mu: float, profile, m: int, runs: int, seed: int, guesses=None):
    """What an audit proves of a Gaussian mechanism on m examples apart from each other."""
    rng, bounds = np.random.default_rng(seed), np.empty(runs)
    for run in range(runs):
        member = rng.random(m) < 0.5
        scores = rng.normal(size=m) + mu * member
        bounds[run] = audit(scores, member, DELTA, profile, guesses)
    return bounds


def test_one_guess_gives_the_bound_worked_by_hand():
    # r_0 + h_0 = 0.95 + 0.95·e^−ε exceeds 1 below ln 19, and so does 0.95 + 1 − 0.05·e^ε.
    assert lower_bound(1, 1, 1, ((1.0, 0.0),), 0.05) == pytest.approx(math.log(19), abs=1e-4)
    # With δ = 0.3 the one is 0.95 + 0.65·e^−ε, and the other 0.95 + 0.7 − 0.05·e^ε.
    assert lower_bound(1, 1, 1, ((1.0, 0.3),), 0.05) == pytest.approx(math.log(13), abs=1e-4)
    # In 19 of 20 cases somebody who knows nothing is no rarer than that.
    assert lower_bound(1, 1, 1, ((1.0, 0.0),), 0.5) == 0


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_bound_exceeds_the_true_epsilon_of_a_gaussian_in_a_twentieth_of_the_runs_at_most(epsilon):
    mu, profile = gaussian(epsilon)
    for guesses in ([50], None):
        bounds = bounds_of(mu, profile, 200, 300, 0, guesses)
        assert (bounds > epsilon).mean() <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 300)
    if epsilon == 8:  # and it is no empty bound
        assert np.median(bounds_of(mu, profile, 1000, 20, 1)) > 3


def test_bound_exceeds_the_true_epsilon_of_randomised_response_in_a_twentieth_of_the_runs_at_most():
    rng, epsilon, m, runs = np.random.default_rng(2), 1.0, 200, 300
    above = 0
    for _ in range(runs):
        member = rng.random(m) < 0.5
        told = np.where(rng.random(m) < expit(epsilon), member, ~member)
        above += audit(told + 1e-3 * rng.random(m), member, 0.0, ((epsilon, 0.0),)) > epsilon
    assert above / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def test_half_the_noise_that_a_claim_asks_for_refutes_it_and_all_of_it_does_not():
    mu, profile = gaussian(8.0)
    assert bounds_of(2 * mu, profile, 1000, 5, 3).min() > 8
    assert bounds_of(mu, profile, 1000, 20, 4).max() < 8


def test_a_thousand_coins_can_refute_eight_by_its_profile_and_not_by_the_one_pair():
    _, profile = gaussian(8.0)
    claim = Claim(
        guarantee="dp", parameters={"epsilon": 8.0, "delta": DELTA}, covers="", profile=profile
    )
    assert claim_terms(None) == (0.0, ())
    assert claim_terms(claim) == (DELTA, profile)
    assert ceiling(1000, *claim_terms(claim)) > 8 > ceiling(1000, DELTA)


def test_bound_grows_with_right_guesses_and_falls_with_confidence():
    _, profile = gaussian(3.0)
    bounds = [lower_bound(right, 200, 400, profile, 0.95) for right in range(150, 201, 10)]
    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[-1]
    assert lower_bound(195, 200, 400, profile, 0.99) < lower_bound(195, 200, 400, profile, 0.95)


@pytest.mark.parametrize("with_profile", [True, False])
def test_an_audit_exceeds_what_is_below_its_bound_and_nothing_above(with_profile):
    mu, profile = gaussian(3.0)
    given = profile if with_profile else ()
    for seed in range(5):
        rng = np.random.default_rng(seed)
        member = rng.random(400) < 0.5
        scores = rng.normal(size=400) + 2 * mu * member
        bound = audit(scores, member, DELTA, given)
        assert 0.1 < bound < 50
        assert exceeds(bound - 1e-4, scores, member, DELTA, given)
        assert not exceeds(bound + 1e-4, scores, member, DELTA, given)


@pytest.mark.parametrize("bad", [((0.0, 0.1),), ((1.0, 1.0),), ((1.0, 0.0),) * 101])
def test_profiles_that_no_accountant_gives_are_refused(bad):
    with pytest.raises(ValueError, match="pairs of 0 < ε"):
        Claim(guarantee="dp", parameters={}, covers="", profile=bad)
