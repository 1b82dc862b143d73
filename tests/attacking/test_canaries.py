"""Exposure: what a rank is worth, and which canaries cannot be ranked."""

from __future__ import annotations

import math

import numpy as np
import pytest
from digit_models import FORM, WORDS, model_of, tokenizer_of
from hypothesis import given
from hypothesis import strategies as st

from leakboard.bench.attacking import canaries as exposures
from leakboard.bench.attacking.canaries import candidates, expected_unseen, exposure
from leakboard.bench.contracts.errors import LeakboardError


def test_the_first_rank_is_worth_all_bits_and_the_last_none():
    scores = np.arange(10**6, dtype=np.float32)
    assert exposure(scores, 0) == pytest.approx(19.9316, abs=1e-4)
    assert exposure(scores, 10**6 - 1) == 0
    assert exposure(scores, 7) == pytest.approx(math.log2(10**6 / 8))


def test_equal_candidates_share_the_mean_of_their_ranks():
    assert exposure(np.zeros(1000), 5) == pytest.approx(math.log2(1000 / 500.5))
    scores = np.array([3.0, 1.0, 1.0, 2.0])  # ranks 4, 1.5, 1.5, 3
    assert exposure(scores, 1) == exposure(scores, 2) == pytest.approx(2 - math.log2(1.5))
    assert exposure(scores, 3) == pytest.approx(2 - math.log2(3))


@given(st.integers(1, 300))
def test_mean_exposure_over_all_secrets_is_the_derived_one(n):
    scores = np.random.default_rng(n).permutation(n)
    assert np.mean([exposure(scores, i) for i in range(n)]) == pytest.approx(expected_unseen(n))


def test_secrets_that_were_never_seen_have_the_derived_exposure_on_average():
    tokenizer = tokenizer_of(True, True)
    model, head = model_of("gpt2", len(tokenizer))
    scores = candidates(model, head, tokenizer, FORM, 3)
    drawn = np.random.default_rng(0).integers(1000, size=4000)
    measured = np.array([exposure(scores, int(truth)) for truth in drawn])
    error = measured.std() / math.sqrt(len(drawn))
    assert measured.mean() == pytest.approx(expected_unseen(1000), abs=4 * error)
    assert expected_unseen(10**6) == pytest.approx(1 / math.log(2), abs=1e-4)


@pytest.mark.parametrize(
    ("words", "form", "begin", "message"),
    [
        (WORDS, "My ID is 123.", True, "exactly one"),
        (WORDS, "Żółw {digits}.", True, "no token for a part"),
        (WORDS, "{digits} is My ID", False, "word in front"),
    ],
)
def test_a_canary_that_cannot_be_ranked_is_refused(words, form, begin, message):
    tokenizer = tokenizer_of(False, begin, words, bos=begin)
    model, head = model_of("llama", len(tokenizer))
    with pytest.raises(LeakboardError, match=message):
        candidates(model, head, tokenizer, form, 3)


def test_digits_that_become_the_same_token_are_refused(monkeypatch):
    tokenizer = tokenizer_of(False, True)
    model, head = model_of("llama", len(tokenizer))
    same = np.ones((1000, 4), dtype=np.int32)
    monkeypatch.setattr(exposures, "token_ids", lambda *_: same)
    with pytest.raises(LeakboardError, match="gives different digits the same tokens"):
        candidates(model, head, tokenizer, FORM, 3)
