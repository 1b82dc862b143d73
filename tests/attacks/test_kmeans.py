"""Labels as clusters."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import cluster

from leakboard.attacks.kmeans import Clusters


def read(x, classes, seed=0):
    return Clusters().read(np.asarray(x, np.float32), classes, np.random.default_rng(seed))


def test_as_many_clusters_as_classes_are_sought_from_ten_starts(monkeypatch):
    asked = []

    class Noted(cluster.KMeans):
        def __init__(self, n_clusters, *, n_init, random_state):
            asked.append((n_clusters, n_init))
            super().__init__(n_clusters, n_init=n_init, random_state=random_state)

    monkeypatch.setattr(cluster, "KMeans", Noted)
    centres = np.repeat(10 * np.eye(3), 5, axis=0)
    found = read(centres + 0.1 * np.random.default_rng(0).standard_normal((15, 3)), 3)
    assert asked == [(3, 10)]
    groups = [set(found[at : at + 5]) for at in (0, 5, 10)]
    assert [len(group) for group in groups] == [1, 1, 1]
    assert set.union(*groups) == {0, 1, 2}


def test_stream_that_it_is_given_decides_its_starts():
    x = np.random.default_rng(1).standard_normal((60, 2))
    seeds = [read(x, 4, seed).tolist() for seed in (0, 0, 1, 2, 3)]
    assert seeds[0] == seeds[1]
    assert any(other != seeds[0] for other in seeds[2:])


@pytest.mark.parametrize("n", [1, 2])
def test_fewer_rows_than_classes_are_one_cluster(n):
    assert read(np.eye(3)[:n], 3).tolist() == [0] * n
