"""CusText+: a word becomes one of its set, by how near that is; stop words are sent as they are."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from cells import fine_tuned, ids_of, leak_of, load_tiny, run

from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.bench.defending.substitution import words_of
from leakboard.defenses.custext_plus import CusTextPlus, nearness_weights, sets_of, stop_words


@pytest.fixture(scope="module")
def base():
    return load_tiny("tiny-bert")


def test_sets_hold_each_word_once_and_begin_with_what_is_nearest(base):
    sets, words = sets_of(base, 7), words_of(base)
    different = {tuple(own[own >= 0].sort().values.tolist()) for own in sets[words]}
    assert sorted(word for own in different for word in own) == words.tolist()
    assert sorted({len(own) for own in different})[-1] == 7
    assert sum(len(own) < 7 for own in different) <= 1
    first = words[0]
    far = (base.embeddings[words] - base.embeddings[first]).norm(dim=1)
    assert set(sets[first].tolist()) == set(words[far.argsort()[:7]].tolist())


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_words_of_a_set_send_what_epsilon_allows_and_the_nearest_is_likeliest(base, epsilon):
    sets = sets_of(base, 7)
    own = sets[words_of(base)[0]]
    chances = nearness_weights(own, sets[own], base.embeddings, epsilon)
    assert torch.allclose(chances.sum(1), torch.ones(7, dtype=torch.double))
    assert (sets[own] == own).all()  # of one set all rows are alike
    worst = (chances.log()[:, None] - chances.log()[None]).max().item()
    assert epsilon / 4 < worst <= epsilon
    assert (chances.argmax(1) == torch.arange(7)).all()
    # The least likely one is the farthest: e^(ε/2) times less likely than the word itself.
    spread = chances.amax(1) / chances.amin(1)
    assert torch.allclose(spread, torch.full_like(spread, math.exp(epsilon / 2)))


def test_words_are_drawn_from_their_set_and_stop_words_are_kept_with_the_plus(base):
    words, kept = words_of(base), stop_words(base)
    assert len(kept)
    assert "the" in base.tokenizer.convert_ids_to_tokens(kept.tolist())
    ids = words.repeat(30)
    drawn = CusTextPlus(epsilon=0.1, size=7).draw_replacements(ids, base, np.random.default_rng(0))
    same, stops = drawn == ids, torch.isin(ids, kept)
    assert same[stops].all()
    assert same[~stops].float().mean() == pytest.approx(1 / 7, abs=0.05)
    assert (sets_of(base, 7)[ids] == drawn[:, None]).any(1).all()
    odd = torch.tensor([base.tokenizer.cls_token_id])
    assert (
        CusTextPlus().draw_replacements(odd, base, np.random.default_rng(0)).tolist()
        == odd.tolist()
    )
    every = CusTextPlus(epsilon=0.1, size=7, stop_words=True)
    drawn = every.draw_replacements(ids, base, np.random.default_rng(0))
    assert (drawn == ids)[stops].float().mean() < 0.5


def test_the_claim_is_of_words_of_one_set_and_names_what_is_sent_as_it_is():
    told = CusTextPlus(epsilon=2.0).claim()
    assert told.parameters == {"epsilon": 2.0, "words": 20}
    assert "not which set it is in; stop words, special tokens" in told.covers
    assert "stop words" not in CusTextPlus(stop_words=True).claim().covers
    assert told.epsilon_of_members is None
    assert CusTextPlus(epsilon=None).claim() is None


def test_what_is_sent_is_drawn_in_training_and_at_inference_and_read_without_it(tmp_path):
    session, inputs, tuned = fine_tuned(CusTextPlus(epsilon=0.1, stop_words=True))
    tuned.predict(inputs.tokens["dev"], "dev")
    for split in ("train", "dev"):
        tokens = inputs.tokens[split]
        same = ids_of(session, split=split) == tokens.ids.values
        assert same[tokens.special].all()
        assert same[~tokens.special].float().mean() < 0.3
    (open_,) = run(tmp_path, CusTextPlus(epsilon=None), attacks=(NearestNeighbour(),))
    assert leak_of(open_, "eia-nn").success.value > 0.99
    assert open_.undefended
