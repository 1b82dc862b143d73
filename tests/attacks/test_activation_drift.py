"""Labels along directions that vary more than before training."""

from __future__ import annotations

import numpy as np
import pytest
from label_attacks import looks_of, success
from moving_labels import (
    agree,
    along,
    behind_another,
    computed,
    start,
    where_little_varied,
)
from scipy.stats import rankdata

from leakboard.attacks.activation_delta import ActivationDelta
from leakboard.attacks.activation_drift import (
    DIRECTIONS,
    SHRINK,
    ActivationDrift,
    components,
    drift,
)
from leakboard.attacks.spectral import Spectral
from leakboard.bench.contracts.threat import Channel


def auc(values, y):
    n = y.sum()
    area = (rankdata(values)[y == 1].sum() - n * (n + 1) / 2) / (n * (len(y) - n))
    return max(area, 1 - area)


@pytest.mark.parametrize("hidden", [where_little_varied, behind_another])
def test_label_is_read_where_little_varied_before(hidden):
    h0, h, y = hidden()
    seen = computed(h0, h)
    assert success(Spectral(), seen, y, Channel.RECOMPUTED).value < 0.65
    assert success(ActivationDelta(), seen, y).value < 0.65
    assert success(ActivationDrift(), seen, y).low > 0.95


def test_directions_are_those_of_the_covariance_whitened_by_the_one_before():
    h0, h, _ = behind_another()
    then = np.cov(h0.T, bias=True)
    whiten = np.linalg.cholesky(then + SHRINK * np.trace(then) / len(then) * np.eye(len(then)))
    x = np.linalg.solve(whiten, (h - h.mean(0)).T).T
    _, _, right = np.linalg.svd(x, full_matrices=False)
    found = drift(h.astype(np.float32), h0.astype(np.float32))
    assert found.shape == (len(h), DIRECTIONS)
    for k in range(DIRECTIONS):
        assert agree(found[:, k], along(x, right[k]))


def test_label_that_no_direction_has_for_itself_is_an_independent_component():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=2000)
    sources = np.c_[2 * y - 1 + 0.2 * rng.standard_normal(2000), rng.laplace(size=2000)]
    mixture = (sources / sources.std(0)) @ np.array([[1, 1], [1, -1]]) / np.sqrt(2)
    assert max(auc(column, y) for column in mixture.T) < 0.95
    assert max(auc(column, y) for column in components(mixture).T) > 0.99


def test_drift_without_labels_is_no_leak_though_several_directions_are_looked_at():
    h0, _ = start()
    h = h0 * np.linspace(1, 2, h0.shape[1])
    y = np.arange(len(h0)) % 2
    found = success(ActivationDrift(), computed(h0, h, 1.5 * h), y)
    assert found.low <= found.chance
    looks = looks_of(ActivationDrift(), computed(h0, h, 1.5 * h), y)
    assert len(looks) == 2 * 2 * DIRECTIONS
    assert found.chance > 0.53  # of one look it would be 0.516


@pytest.mark.parametrize("h", [np.zeros((30, 4)), np.ones((30, 1)), np.eye(30)[:, :5]])
def test_activations_that_hardly_vary_give_ranks_that_can_be_scored(h):
    found = success(ActivationDrift(), computed(h, 2 * h), np.arange(30) % 2)
    assert 0 <= found.low <= found.value <= found.high <= 1
