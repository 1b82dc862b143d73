"""The search for nearest rows, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leakboard.bench.backbones import neighbours
from leakboard.bench.backbones.neighbours import Neighbours, manhattan

# With a number, the CPU goes the way of a GPU.
on_each_way = pytest.mark.parametrize("device", ["cpu", "cpu:0"])


def rng(seed=0):
    return np.random.default_rng(seed)


@on_each_way
@given(st.integers(1, 30), st.integers(1, 40), st.integers(1, 5), st.integers(0, 2**32))
def test_nearest_equals_brute_force_and_ties_give_a_row_of_equal_distance(
    device, n, rows, width, seed
):
    # Small whole numbers: distances are exact, and ties are frequent.
    matrix = rng(seed).integers(-3, 4, size=(rows, width)).astype(np.float32)
    queries = rng(seed + 1).integers(-3, 4, size=(n, width)).astype(np.float32)
    search = Neighbours(torch.from_numpy(matrix), device)
    distance = ((queries[:, None] - matrix[None]) ** 2).sum(-1)
    for found in (
        search.nearest(queries),
        search.nearest(torch.from_numpy(queries)),
        search.nearest_repeated(queries),
    ):
        assert found.shape == (n,)
        assert (distance[np.arange(n), found] == distance.min(1)).all()


@on_each_way
def test_nearest_joins_its_chunks_in_order(monkeypatch, device):
    monkeypatch.setattr(neighbours, "CHUNK", 7)
    rows = rng().normal(size=(40, 4)).astype(np.float32)
    order = rng(1).permutation(40)
    search = Neighbours(torch.from_numpy(rows), device)
    assert search.nearest(rows[order]).tolist() == order.tolist()


@given(st.integers(1, 4), st.integers(0, 2**32), st.integers(1, 3))
def test_repeated_queries_in_any_memory_layout_equal_plain_ones(distinct, seed, step):
    rows = torch.from_numpy(rng(seed).normal(size=(20, 4)).astype(np.float32))
    search = Neighbours(rows)
    pool = rng(seed).normal(size=(distinct, 4)).astype(np.float32)
    queries = pool[rng(seed + 1).integers(distinct, size=9)]
    for view in (queries[::step], queries[::step][:1], np.asfortranarray(queries)):
        assert search.nearest_repeated(view).tolist() == search.nearest(view).tolist()


def test_no_query_gives_no_row():
    search = Neighbours(torch.zeros(3, 2))
    assert len(search.nearest(np.zeros((0, 2)))) == 0
    assert len(search.nearest_repeated(np.zeros((0, 2), np.float32))) == 0


def test_manhattan_distances_are_sums_of_differences():
    queries, rows = torch.randn(5, 7), torch.randn(40, 7)
    expected = (queries[:, None] - rows).abs().sum(2)
    torch.testing.assert_close(manhattan(queries, rows), expected)
    assert manhattan(rows[3:4].double(), rows)[0, 3] == 0
