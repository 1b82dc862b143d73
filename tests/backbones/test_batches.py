"""Batches: every row once, similar lengths together."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from leakboard.bench.backbones.ragged import by_length, length_bucketed


@given(st.lists(st.integers(1, 30), min_size=1, max_size=200), st.integers(1, 9), st.integers(0, 9))
def test_every_row_is_in_exactly_one_batch_and_the_seed_decides_the_order(lengths, size, seed):
    lengths = torch.tensor(lengths)
    batches = length_bucketed(lengths, size, np.random.default_rng(seed))
    assert sorted(torch.cat(batches).tolist()) == list(range(len(lengths)))
    assert max(map(len, batches)) <= size
    again = length_bucketed(lengths, size, np.random.default_rng(seed))
    assert [b.tolist() for b in batches] == [b.tolist() for b in again]
    assert sorted(torch.cat(by_length(lengths, size)).tolist()) == list(range(len(lengths)))


def test_batches_hold_similar_lengths_in_mixed_order():
    lengths = torch.from_numpy(np.random.default_rng(0).integers(1, 100, size=3000))
    batches = length_bucketed(lengths, 20, np.random.default_rng(1))
    spread = np.mean([float(lengths[b].max() - lengths[b].min()) for b in batches])
    assert spread < 10
    means = np.array([lengths[b].float().mean() for b in batches])
    assert abs(np.corrcoef(means[:-1], means[1:])[0, 1]) < 0.3
    other = length_bucketed(lengths, 20, np.random.default_rng(2))
    assert torch.cat(batches).tolist() != torch.cat(other).tolist()
