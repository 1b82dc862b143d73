"""Words are drawn for words by the exponential mechanism, each at its place and on its own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import load_tiny
from scipy import stats

from leakboard.bench.defending.mechanisms import draw_words, exponential_weights
from leakboard.bench.defending.substitution import words_of
from leakboard.defenses.custext_plus import CusTextPlus, stop_words
from leakboard.defenses.santext_plus import SanTextPlus

ROWS = torch.tensor([[0.0, 0.0], [3.0, 4.0], [1.0, 0.0], [0.0, 2.0], [6.0, 8.0]])
EVERY = torch.arange(5)
DRAWS = 4000


def test_a_candidate_is_as_likely_as_its_distance_says():
    (found,) = exponential_weights(torch.tensor([1]), torch.tensor([0, 1, 4]), ROWS, 0.4)
    far = np.exp(-0.2 * np.array([5.0, 0.0, 5.0]))
    assert np.allclose(found, far / far.sum())


def test_what_two_words_send_differs_by_no_more_than_their_distance_allows():
    epsilon = 1.7
    chances = exponential_weights(EVERY, EVERY, ROWS, epsilon).log()
    worst = (chances[:, None] - chances[None]).amax(2)
    allowed = epsilon * torch.cdist(ROWS, ROWS)
    assert (worst <= allowed + 1e-6).all()
    assert (worst > allowed / 2).any()


def test_draws_follow_the_chances_of_each_word_and_are_made_anew_for_each_place():
    among = torch.tensor([[7, 8, 9], [4, 5, 6]])
    chances = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.0, 0.9]], dtype=torch.double)
    ids = torch.tensor([30, 10] * 5000)

    def weights(some):
        place = torch.searchsorted(torch.tensor([10, 30]), some)
        return among[place], chances[place]

    drawn = draw_words(ids, weights, np.random.default_rng(0))
    for word, own, expected in zip((10, 30), among, chances, strict=True):
        here = drawn[ids == word]
        counts = np.array([(here == each).sum() for each in own])
        assert counts.sum() == len(here)
        kept = expected > 0
        assert counts[~kept].sum() == 0
        law = (len(here) * expected[kept]).numpy()
        assert stats.chisquare(counts[kept], law).pvalue > 1e-4


def test_words_beyond_one_look_are_drawn_for_too(monkeypatch):
    monkeypatch.setattr("leakboard.bench.defending.mechanisms.SEARCHED", 2)
    ids = torch.tensor([4, 2, 0, 3, 1, 4])
    drawn = draw_words(ids, lambda some: (EVERY, torch.eye(5)[some]), np.random.default_rng(0))
    assert drawn.tolist() == ids.tolist()


@pytest.mark.parametrize(
    "defense",
    [
        CusTextPlus(epsilon=3.0, size=7),
        CusTextPlus(epsilon=3.0, size=7, stop_words=True),
        SanTextPlus(epsilon=20.0, sensitive=0.5, p=0.4),
        SanTextPlus(epsilon=20.0, sensitive=1),
        SanTextPlus(epsilon=20.0, sensitive=0.5, p=1.0),
    ],
    ids=repr,
)
def test_what_is_stated_is_what_is_drawn(defense):
    base = load_tiny("tiny-bert")
    every = words_of(base)
    words = torch.cat([every[:2], every[-2:], stop_words(base)[:1]])
    stated = defense.log_chances(words, base)(every).exp().double()
    assert torch.allclose(stated.sum(0), torch.ones(len(words), dtype=torch.double), atol=1e-4)
    drawn = defense.draw_replacements(words.repeat(DRAWS), base, np.random.default_rng(0))
    columns = drawn.reshape(DRAWS, -1).T.contiguous()
    for word, chances, column in zip(words, stated.T, columns, strict=True):
        counts = torch.bincount(torch.searchsorted(every, column), minlength=len(every))
        likely = chances > 5 / DRAWS
        spread = (DRAWS * chances * (1 - chances)).sqrt()
        off = (counts - DRAWS * chances).abs() / spread.clamp(min=1)
        assert (off[likely] < 5).all(), int(word)
        assert not counts[chances == 0].any()
