"""Bayes' rule for text-to-text mechanisms, and what their guarantee leaves to it, by enumeration."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import laplace

from leakboard.bench.attacking.posterior import Posterior, StatedPosterior, posterior_bound


def on_a_line(points: list[float], eta: float) -> np.ndarray:
    """[V, V] P(y|x) of the mechanism in one dimension, exactly: Laplace noise, then the nearest point."""
    order = np.argsort(points)
    x = np.asarray(points)[order]
    edges = np.concatenate([[-np.inf], (x[1:] + x[:-1]) / 2, [np.inf]])
    below = laplace(scale=1 / eta).cdf(edges[None] - x[:, None])
    found = np.zeros((len(x), len(x)))
    found[np.ix_(order, order)] = np.diff(below, axis=1)
    return found


def best_success(likelihood: np.ndarray, prior: np.ndarray) -> float:
    """Of the optimal attacker: Σ over y of max over x of p(x) P(y|x)."""
    return float((prior[:, None] * likelihood).max(0).sum())


POINTS = [0.0, 0.4, 0.5, 1.3, -0.7, 2.5]
COUNTS = np.array([50, 3, 20, 1, 10, 16])


def bound_of(points, counts, eta) -> float:
    rows = torch.tensor(points).reshape(len(points), -1)
    return posterior_bound(rows, torch.tensor(counts), eta)


@pytest.mark.parametrize("counts", [COUNTS, COUNTS[::-1].copy(), np.ones(6, int)])
@pytest.mark.parametrize("eta", [1e-6, 0.3, 1.0, 3.0, 10.0, 100.0])
def test_nobody_who_knows_frequencies_does_better_than_the_bound(eta, counts):
    likelihood = on_a_line(POINTS, eta)
    assert likelihood.sum(1) == pytest.approx(np.ones(6))
    found, most = best_success(likelihood, counts / counts.sum()), bound_of(POINTS, counts, eta)
    assert found <= most + 1e-12
    assert counts.max() / counts.sum() - 1e-9 <= most <= 1


def test_the_bound_falls_to_the_most_frequent_token_and_rises_to_certainty():
    bounds = [bound_of(POINTS, COUNTS, eta) for eta in (0.0, 0.1, 1.0, 5.0, 1000.0)]
    assert bounds[0] == pytest.approx(0.5)
    assert bounds == sorted(bounds)
    assert bounds[1] < 0.6
    assert bounds[-1] == pytest.approx(1.0)


@pytest.mark.parametrize("eta", [0.2, 1.0, 4.0])
def test_randomised_response_among_equally_distant_tokens_meets_the_bound(eta):
    # The simplex: every distance is √2, and no mechanism with this guarantee tells more.
    n, odds = 5, np.exp(eta * np.sqrt(2))
    likelihood = (np.ones((n, n)) + (odds - 1) * np.eye(n)) / (odds + n - 1)
    found = best_success(likelihood, np.full(n, 1 / n))
    assert bound_of(np.eye(n).tolist(), np.ones(n, int), eta) == pytest.approx(found)


@pytest.mark.parametrize("guesses", [1, 2, 3])
@pytest.mark.parametrize("eta", [0.2, 1.0, 4.0])
def test_the_bound_of_several_guesses_is_met_where_that_of_one_is(eta, guesses):
    n, odds = 5, np.exp(eta * np.sqrt(2))
    likelihood = (np.ones((n, n)) + (odds - 1) * np.eye(n)) / (odds + n - 1)
    found = float(np.sort(likelihood / n, axis=0)[-guesses:].sum())
    rows = torch.eye(n)
    most = posterior_bound(rows, torch.ones(n, dtype=torch.int64), eta, guesses)
    assert found <= most + 1e-6
    assert guesses > 1 or most == pytest.approx(found)
    assert posterior_bound(rows, torch.ones(n, dtype=torch.int64), 0.0, guesses) == pytest.approx(
        guesses / n
    )


def test_tokens_beyond_the_most_frequent_ones_can_only_raise_the_bound(monkeypatch):
    whole = bound_of(POINTS, COUNTS, 1.0)
    monkeypatch.setattr("leakboard.bench.attacking.posterior.MOST", 3)
    assert whole < bound_of(POINTS, COUNTS, 1.0) < 1
    assert bound_of(POINTS, COUNTS, 1000.0) == pytest.approx(1.0)


def pairs_of(eta: float, n: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    truth = rng.choice(6, n, p=COUNTS / COUNTS.sum())
    noisy = np.asarray(POINTS)[truth] + rng.laplace(scale=1 / eta, size=n)
    sent = np.abs(noisy[:, None] - np.asarray(POINTS)).argmin(1)
    return torch.from_numpy(truth), torch.from_numpy(sent)


@pytest.mark.parametrize("eta", [0.5, 2.0, 5.0])
def test_on_a_small_vocabulary_it_is_nearly_as_good_as_the_exact_posterior(eta):
    prior, likelihood = COUNTS / COUNTS.sum(), on_a_line(POINTS, eta)
    rows = torch.tensor(POINTS)[:, None]
    found = Posterior.fitted(rows, torch.tensor(COUNTS), *pairs_of(eta, 2000))
    read = found.read(torch.arange(6)[:, None])[:, 0].numpy()
    own = float((prior[read] * likelihood[read, np.arange(6)]).sum())
    best = best_success(likelihood, prior)
    copied = float((prior * likelihood.diagonal()).sum())
    assert own > best - 0.02
    assert own >= copied


def test_the_prior_counts_once_and_the_likelihood_in_every_round():
    rows = torch.tensor([[0.0], [1.0], [2.0]])
    counts = torch.tensor([99, 3, 1])
    weights = torch.tensor([1.0, 0.0, 0.0, 2.0, 0.0])
    prior = (counts + 0.5).log()
    found = Posterior(rows, prior - prior.logsumexp(0), weights, torch.arange(2))
    # ln(99.5 / 1.5) is 4.2: two sightings of token 2 are not enough, three are.
    assert found.read(torch.tensor([[2, 2]]))[:, 0].tolist() == [0]
    thrice = torch.tensor([[2, 2, 2], [0, 0, 0], [1, 1, 1]])
    assert found.read(thrice)[:, 0].tolist() == [2, 0, 1]


def test_several_rounds_give_as_many_different_candidates_the_likeliest_first():
    rows = torch.tensor([[0.0], [1.0], [2.0], [9.0]])
    prior, weights = torch.zeros(4), torch.tensor([1.0, 1.0, 0.0, 1.0, 0.0])
    found = Posterior(rows, prior, weights, torch.arange(3))
    assert found.read(torch.tensor([[2, 2], [3, 3]])).tolist() == [[2, 1], [3, 2]]
    assert found.read(torch.tensor([[3, 0, 3]])).tolist() == [[3, 2, 1]]
    sent = torch.tensor([[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]]).log()
    counts = torch.tensor([5, 5, 5])
    stated = StatedPosterior.of(lambda words: lambda got: sent[words][:, got].T, counts)
    assert stated.read(torch.tensor([[0, 0], [1, 1]])).tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize("rounds", [1, 2])
def test_where_the_mechanism_states_its_chances_the_posterior_is_exact(rounds):
    rng = np.random.default_rng(0)
    chances = torch.from_numpy(rng.dirichlet(np.ones(6), 6))  # [x, y]
    counts = torch.tensor([50, 3, 0, 1, 10, 16])  # one that public text lacks

    def given(words):
        return lambda sent: chances.log()[words][:, sent].T

    received = torch.cartesian_prod(*[torch.arange(6)] * rounds).reshape(-1, rounds)
    found = StatedPosterior.of(given, counts).read(received)
    prior = (counts + 0.5).double().log()
    for row, word in zip(received.tolist(), found[:, 0].tolist(), strict=True):
        scores = prior + sum(chances.log()[:, y] for y in row)
        if 2 not in row:
            scores[2] = -torch.inf  # neither known nor received
        assert word == int(scores.argmax())
