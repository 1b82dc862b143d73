"""The laws of the noise."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.bench.backbones.neighbours import Neighbours
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.defending import mechanisms
from leakboard.bench.defending.mechanisms import dx_noise, privatise_tokens
from leakboard.bench.methods.knowledge import Knowledge
from leakboard.bench.tasks.loading import load_task

REJECTED = 1e-4
"""A p-value below this fails; the seeds are fixed, so a law that holds passes every time."""


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize(("width", "eta"), [(1, 1.0), (2, 5.0), (16, 0.5), (384, 75.0)])
def test_radius_follows_the_gamma_law(width, eta):
    radius = np.linalg.norm(dx_noise(5000, width, eta, rng()), axis=1)
    assert stats.kstest(radius, stats.gamma(width, scale=1 / eta).cdf).pvalue > REJECTED
    error = radius.std() / np.sqrt(5000)
    assert radius.mean() == pytest.approx(width / eta, abs=4 * error)


def test_each_row_has_its_own_radius_and_not_one_for_the_batch():
    radius = np.linalg.norm(dx_noise(200, 32, 10.0, rng()), axis=1)
    assert len(np.unique(radius.round(5))) > 190
    # Gamma(32, 1/10) has the standard deviation √32/10 = 0.57.
    assert radius.std() == pytest.approx(np.sqrt(32) / 10, rel=0.2)


def test_coordinates_of_a_row_share_one_radius():
    # A Gamma draw per coordinate would leave the direction far from a normalised Gaussian:
    # E Σ u⁴ is 3/(d+2) on the sphere.
    noise = dx_noise(20000, 8, 3.0, rng())
    direction = noise / np.linalg.norm(noise, axis=1, keepdims=True)
    assert (direction**4).sum(1).mean() == pytest.approx(3 / (8 + 2), rel=0.02)


@pytest.mark.parametrize("width", [2, 3, 32])
def test_directions_are_uniform_on_the_sphere(width):
    noise = dx_noise(20000, width, 2.0, rng(1))
    direction = noise / np.linalg.norm(noise, axis=1, keepdims=True)
    error = 4 / np.sqrt(20000 * width)
    assert np.abs(direction.mean(0)).max() < 1.3 * error
    covariance = np.cov(direction.T)
    assert np.abs(covariance - np.eye(width) / width).max() < 3 * error
    # The projection on any fixed direction, squared, follows Beta(1/2, (d − 1)/2).
    law = stats.beta(0.5, (width - 1) / 2).cdf
    for axis in (np.eye(width)[0], np.full(width, width**-0.5), rng(2).normal(size=width)):
        squared = (direction @ (axis / np.linalg.norm(axis))) ** 2
        assert stats.kstest(np.clip(squared, 0, 1), law).pvalue > REJECTED


def test_radius_and_direction_are_independent():
    noise = dx_noise(20000, 4, 1.0, rng(3))
    radius = np.linalg.norm(noise, axis=1)
    for column in (noise / radius[:, None]).T:
        assert stats.spearmanr(radius, column).pvalue > REJECTED
        assert stats.spearmanr(radius, np.abs(column)).pvalue > REJECTED


def test_rows_are_independent():
    noise = dx_noise(20000, 1, 1.0, rng(4))[:, 0]
    assert stats.spearmanr(noise[:-1], noise[1:]).pvalue > REJECTED


def test_density_in_one_dimension_is_proportional_to_exp_of_minus_eta_times_distance():
    # In one dimension the density η/2·exp(−η|n|) is Laplace's.
    noise = dx_noise(20000, 1, 3.0, rng(5))[:, 0]
    assert stats.kstest(noise, stats.laplace(scale=1 / 3).cdf).pvalue > REJECTED


def test_density_in_two_dimensions_is_proportional_to_exp_of_minus_eta_times_distance():
    eta, n, edge = 2.0, 400_000, np.linspace(-1.5, 1.5, 13)
    noise = dx_noise(n, 2, eta, rng(6))
    counts = np.histogram2d(*noise.T, bins=[edge, edge])[0]
    fine = np.linspace(-1.5, 1.5, 12 * 20 + 1)
    middle = (fine[:-1] + fine[1:]) / 2
    # ∫ exp(−η‖n‖) over the plane is 2π/η².
    density = np.exp(-eta * np.hypot(middle[:, None], middle)) * eta**2 / (2 * np.pi)
    density = density * (fine[1] - fine[0]) ** 2
    expected = n * density.reshape(12, 20, 12, 20).sum((1, 3))
    # The cells outside the square are one more category.
    got = np.append(counts.ravel(), n - counts.sum())
    want = np.append(expected.ravel(), n - expected.sum())
    assert stats.chisquare(got, want).pvalue > REJECTED


@pytest.mark.parametrize("width", [1, 2])
def test_dx_inequality_holds_in_every_region_and_is_tight_behind_the_point(width):
    # p(y|x)/p(y|x') = exp(−η‖y − x‖ + η‖y − x'‖) ≤ exp(η‖x − x'‖), with equality on the line
    # behind x; a mechanism of another law, such as a Gaussian, breaks the bound there.
    eta, n, apart = 2.0, 400_000, 0.6
    edges = [np.linspace(-2, 2.6, 24), np.array([-0.3, 0.3])][:width]
    moved = dx_noise(n, width, eta, rng(8)) + np.eye(width)[0] * apart
    at_x = np.histogramdd(dx_noise(n, width, eta, rng(7)), edges)[0].ravel()
    at_other = np.histogramdd(moved, edges)[0].ravel()
    error = np.sqrt(1 / at_x + 1 / at_other)
    log_ratio = np.log(at_x / at_other)
    assert (log_ratio <= eta * apart + 4 * error).all()
    assert (-log_ratio <= eta * apart + 4 * error).all()
    assert np.median(log_ratio[:9]) == pytest.approx(eta * apart, abs=0.1)


def test_frequencies_of_output_tokens_keep_the_dx_bound():
    words = torch.tensor([[0.0, 0.0], [0.4, 0.0], [0.0, 0.7], [0.9, 0.8]])
    eta, n, search = 3.0, 100_000, Neighbours(words)
    share = np.stack(
        [
            np.bincount(
                privatise_tokens(torch.full((n,), i), words, search, eta, rng(i)), minlength=4
            )
            / n
            for i in range(4)
        ]
    )
    error = 4 * np.sqrt(share * (1 - share) / n)
    bound = np.exp(eta * torch.cdist(words, words).numpy())
    for x in range(4):
        for other in range(4):
            ratio = (share[x] - error[x]) / (share[other] + error[other])
            assert (ratio <= bound[x, other]).all()
    # The bound is not met by sending everything everywhere: neighbours differ in their outputs.
    assert (share.argmax(1) == np.arange(4)).all()


def brute(queries, rows):
    return ((queries[:, None] - rows[None]) ** 2).sum(-1).argmin(1)


def test_privatised_token_is_the_nearest_row_to_the_same_noise():
    rows = rng(0).normal(size=(50, 6)).astype(np.float32)
    ids = torch.from_numpy(rng(1).integers(50, size=300))
    out = privatise_tokens(
        ids, torch.from_numpy(rows), Neighbours(torch.from_numpy(rows)), 4, rng(2)
    )
    noise = dx_noise(300, 6, 4, rng(2))
    assert out.tolist() == brute(rows[ids] + noise, rows).tolist()
    assert 0.1 < (out == ids).float().mean() < 0.9


def test_law_of_outputs_does_not_depend_on_the_chunk(monkeypatch):
    rows = torch.from_numpy(rng(0).normal(size=(8, 3)).astype(np.float32))
    ids = torch.arange(8).repeat(2000)
    found = []
    for chunk in (37, 100_000):
        monkeypatch.setattr(mechanisms, "CHUNK", chunk)
        out = privatise_tokens(ids, rows, Neighbours(rows), 2.0, rng(3))
        found.append(np.bincount(ids * 8 + out, minlength=64).reshape(8, 8))
    for few, many in zip(*found, strict=True):
        assert stats.chi2_contingency(np.stack([few, many]) + 1).pvalue > REJECTED


def test_chunks_draw_different_noise(monkeypatch):
    monkeypatch.setattr(mechanisms, "CHUNK", 50)
    rows = torch.from_numpy(rng(0).normal(size=(50, 6)).astype(np.float32))
    ids = torch.arange(50).repeat(2)
    out = privatise_tokens(ids, rows, Neighbours(rows), 4.0, rng(3))
    assert out[:50].tolist() != out[50:].tolist()


def test_smaller_eta_changes_more_tokens(tiny):
    ids = torch.arange(len(tiny.embeddings))
    search = Neighbours(tiny.embeddings)
    changed = [
        (privatise_tokens(ids, tiny.embeddings, search, eta, rng()) != ids).float().mean()
        for eta in (2000, 500, 200, 50)
    ]
    assert changed == sorted(changed)
    assert changed[0] < 0.05
    assert changed[-1] > 0.95


@pytest.mark.parametrize(("eta", "expected"), [(75, 0.48), (100, 0.135)])
def test_minilm_on_sst2_reaches_the_known_empirical_privacy(minilm, data, eta, expected):
    texts = load_task("sst2", data).split("dev").texts[:400]
    tokens = minilm.encode(texts, None, 128)
    ids = tokens.ids.values[~tokens.special]
    search = Neighbours(minilm.embeddings)
    sent = minilm.embeddings[privatise_tokens(ids, minilm.embeddings, search, eta, rng(0))]
    one = np.arange(1)
    message = Message(
        Channel.REPRESENTATIONS, "dev", 0, "customer", "vendor", 0, one, sent.numpy(),
        np.array([len(ids)]),
    )  # fmt: skip
    knowledge = Knowledge(2, "cpu", base=minilm)
    (guess,) = NearestNeighbour().guess(Transcript((message,)), knowledge, rng())
    privacy = 1 - np.mean(guess.values[:, 0] == ids.numpy())
    assert privacy == pytest.approx(expected, abs=0.02)
