"""What the learned inversions share: which reader is kept, and how public texts are divided."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from cells import load_tiny

from leakboard.bench.attacking import inversion
from leakboard.bench.contracts.errors import LeakboardError


def test_a_reader_that_is_no_better_than_the_first_is_not_taken():
    base = load_tiny("tiny-bert")
    tokens = base.encode(["the food was good", "not good"], None, 16)

    def perfect(rounds):
        return tokens.ids.values

    def same(rounds):
        return tokens.ids.values.clone()

    def wrong(rounds):
        return torch.zeros_like(tokens.ids.values)

    def query(tokens, rng):
        return inversion.simulate_vectors(None, base, tokens, 0, rng)

    rng = np.random.default_rng(0)
    assert inversion.best_reader([perfect, same], query, tokens, 1, rng) is perfect
    assert inversion.best_reader([wrong, perfect], query, tokens, 1, rng) is perfect


def test_one_auxiliary_text_is_too_few_to_train_and_to_choose():
    tokens = load_tiny("tiny-bert").encode(["not good"], None, 16)
    with pytest.raises(LeakboardError, match="at least 2 auxiliary texts, got 1"):
        inversion.split_public(tokens, 10, np.random.default_rng(0))


def test_a_text_that_is_there_again_is_not_held_out_when_it_is_trained_on():
    words = ("the", "food", "was", "good", "not", "service", "film", "and")
    texts = [" ".join(each) for each in itertools.product(words, repeat=3)]
    tokens = load_tiny("tiny-bert").encode([*texts, *texts], None, 16)
    parts = inversion.split_public(tokens, 2000, np.random.default_rng(0))
    known, tried = ({tuple(each.tolist()) for each in part.ids.padded()} for part in parts)
    assert not known & tried
    assert known | tried == {tuple(each.tolist()) for each in tokens.ids.padded()}
    assert len(tokens) / 20 < len(parts[1]) < len(tokens) / 5


def test_texts_of_one_source_are_divided_all_the_same():
    tokens = load_tiny("tiny-bert").encode(["not good"] * 20, None, 16)
    train, held_out = inversion.split_public(tokens, 10, np.random.default_rng(0))
    assert (len(train), len(held_out)) == (9, 1)
