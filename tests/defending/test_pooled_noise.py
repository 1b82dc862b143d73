"""What DPNR and CAPE share: scaling, noise per dimension, words that leave, and what is claimed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from cells import load_tiny
from scipy.stats import kstest

from leakboard.bench.backbones.ragged import Ragged, Tokens
from leakboard.bench.defending.pooled_noise import (
    amplified_epsilon,
    drop_words,
    laplace,
    rescale_rows,
)

EPSILON = 0.5


def texts(n=200, words=20):
    """n texts of so many words between two special tokens."""
    lengths = torch.full((n,), words + 2)
    ids = torch.arange(n * (words + 2))
    special = torch.zeros(n, words + 2, dtype=torch.bool)
    special[:, 0] = special[:, -1] = True
    return Tokens(Ragged(ids, lengths), torch.zeros_like(ids), special.flatten())


def test_every_dimension_has_laplace_noise_of_its_own():
    noise = laplace(4000, 8, EPSILON, np.random.default_rng(0)).numpy()
    for column in noise.T:
        assert kstest(column, "laplace", args=(0, 1 / EPSILON)).pvalue > 1e-3
    between = np.corrcoef(noise.T)[~np.eye(8, dtype=bool)]
    assert abs(between).max() < 0.08  # five standard errors
    sizes = np.corrcoef(abs(noise).T)[~np.eye(8, dtype=bool)]
    assert abs(sizes).max() < 0.08  # nor is one scale drawn for all


def test_noise_is_drawn_afresh_at_every_call():
    rng = np.random.default_rng(0)
    first, second = laplace(3, 5, EPSILON, rng), laplace(3, 5, EPSILON, rng)
    assert (first != second).all()
    assert (first[0] != first[1]).all()


def test_scaling_brings_each_text_to_0_and_1_and_undoes_any_scale_and_shift():
    vectors = torch.randn(6, 32, generator=torch.Generator().manual_seed(0))
    scaled = rescale_rows(vectors)
    assert (scaled.amin(1) == 0).all()
    torch.testing.assert_close(scaled.amax(1), torch.ones(6))
    factors, shifts = torch.tensor([[3.0]] * 6), torch.arange(6.0)[:, None]
    torch.testing.assert_close(rescale_rows(factors * vectors + shifts), scaled)
    assert (rescale_rows(torch.ones(1, 4)) == 0).all()  # and no NaN


def test_dropped_words_leave_the_sequence_and_special_tokens_stay():
    tokens = texts()
    left = drop_words(tokens, 0.3, np.random.default_rng(0))
    kept = left.lengths.float().mean() - 2
    assert abs(kept / 20 - 0.7) < 0.03
    assert len(left.ids.values) == len(left.types) == len(left.special) == left.lengths.sum()
    assert left.special.sum() == 2 * len(tokens)
    for row in range(3):  # those that stay are in order
        own = left.ids.take(torch.tensor([row])).values
        assert (own[1:] > own[:-1]).all()
        assert (own // 22 == row).all()
    nothing = drop_words(tokens, 0.0, np.random.default_rng(0))
    assert torch.equal(nothing.ids.values, tokens.ids.values)


def test_a_text_without_special_tokens_keeps_a_word():
    ids = Ragged.of([[5, 6, 7], [8]])
    bare = Tokens(ids, torch.zeros(4, dtype=torch.long), torch.zeros(4, dtype=torch.bool))
    left = drop_words(bare, 0.999999, np.random.default_rng(0))
    assert left.lengths.tolist() == [1, 1]
    assert left.ids.values.tolist() == [5, 8]


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 5.0])
def test_dropout_amplifies_by_the_formula_also_where_the_power_overflows(epsilon):
    for rate in (0.0, 0.1, 0.9):
        assert amplified_epsilon(epsilon, rate) == pytest.approx(
            math.log((1 - rate) * math.exp(epsilon) + rate)
        )
    assert amplified_epsilon(5000.0, 0.5) == pytest.approx(5000 + math.log(0.5))


def test_the_public_encoder_is_asked_once_for_the_same_texts(monkeypatch):
    base, asked = load_tiny("tiny-bert"), []
    through = type(base.family).pooled

    def counted(self, *given):
        asked.append(given)
        return through(self, *given)

    monkeypatch.setattr(type(base.family), "pooled", counted)
    one, same, other = (
        base.encode([text], pair, 32)
        for text, pair in (("a film", None), ("a film", None), ("a", ["film"]))
    )
    assert torch.equal(base.pooled(one), base.pooled(same))
    assert len(asked) == 1
    segments = replace(one, types=1 - one.types)
    assert not torch.equal(base.pooled(one), base.pooled(segments))
    base.pooled(other)
    assert len(asked) == 3


def test_each_text_is_encoded_once_among_whichever_texts(monkeypatch):
    base, encoded = load_tiny.__wrapped__("tiny-bert"), []
    through = type(base)._pooled

    def counted(self, tokens, blocks):
        encoded.extend(tokens.ids.sequences())
        return through(self, tokens, blocks)

    monkeypatch.setattr(type(base), "_pooled", counted)
    texts = ["a film", "a bad film", "good food", "the service"]
    tokens = base.encode(texts, None, 32)
    first = base.pooled(tokens.take(torch.tensor([0, 1])))
    some = base.pooled_singly(tokens.take(torch.tensor([2, 1, 2, 3])))
    assert len(encoded) == len(set(encoded)) == 4
    assert torch.equal(some[1], first[1])
    assert torch.equal(some[0], some[2])
    torch.testing.assert_close(some, base.pooled(tokens)[[2, 1, 2, 3]], rtol=1e-5, atol=1e-6)
    segments = replace(tokens, types=1 - tokens.types)
    assert (base.pooled_singly(segments) - base.pooled(tokens)).abs().max() > 1e-3
    monkeypatch.setattr("leakboard.bench.backbones.backbone.MEANS", 2 * 4 * base.width)
    assert base.pooled_singly(base.encode(WORDS, None, 32)).shape == (5, base.width)
    assert len(base._each) == 2


WORDS = ["slow", "fast", "late", "cold", "warm"]


def test_the_public_mean_is_that_of_a_loop_over_real_tokens():
    base = load_tiny("tiny-bert")
    tokens = base.encode(["a bad film", "a long and very good film indeed"], None, 32)
    pooled = base.pooled(tokens)
    for row in range(2):
        one = tokens.take(torch.tensor([row]))
        words = one.ids.with_values(base.embeddings[one.ids.values])
        states = base.bottom(words, one.types, base.blocks).values
        total = torch.zeros(base.width)
        for state in states:
            total += state
        torch.testing.assert_close(pooled[row], total / len(states), rtol=1e-4, atol=1e-5)
