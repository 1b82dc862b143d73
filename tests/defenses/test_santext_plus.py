"""SanText+: what is rare becomes something rare that is near; what is frequent is mostly sent as it is."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from cells import fine_tuned, ids_of, leak_of, load_tiny, run

from leakboard.attacks.eia_bayes import BayesInversion
from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.bench.defending.substitution import words_of
from leakboard.defenses.santext_plus import SanTextPlus


@pytest.fixture(scope="module")
def base():
    return load_tiny("tiny-bert")


def rare_of(base, share):
    words = words_of(base)
    return words[math.floor((1 - share) * len(words)) :]


def test_rare_words_stay_among_rare_ones_and_others_are_replaced_now_and_then(base):
    defense = SanTextPlus(epsilon=0.1, sensitive=0.5, p=0.25)
    words, rare = words_of(base), rare_of(base, 0.5)
    ids = words.repeat(200)
    drawn = defense.draw_replacements(ids, base, np.random.default_rng(0))
    hidden = torch.isin(ids, rare)
    assert torch.isin(drawn[hidden], rare).all()
    changed = drawn[~hidden] != ids[~hidden]
    assert torch.isin(drawn[~hidden][changed], rare).all()
    share = changed.float().mean().item()
    assert share == pytest.approx(0.25, abs=4 * math.sqrt(0.25 * 0.75 / len(changed)))
    # Of so many rare words hardly one is drawn for itself where ε is small.
    assert (drawn[hidden] == ids[hidden]).float().mean() < 5 / len(rare)


def test_all_is_sensitive_without_the_plus_and_then_the_bound_of_the_mechanism_holds(base):
    plain, plus = SanTextPlus(epsilon=3.0, sensitive=1), SanTextPlus(epsilon=3.0, p=0.5)
    assert plain.claim().parameters == {"eta": 3.0}
    assert plus.claim().parameters == {"epsilon": 3.0, "epsilon_0": pytest.approx(math.log(2))}
    assert plus.claim().epsilon_of_members is None
    assert SanTextPlus(epsilon=None).claim() is None
    words = words_of(base)
    drawn = plain.draw_replacements(words, base, np.random.default_rng(0))
    assert torch.isin(drawn, words).all()
    assert base.tokenizer.unk_token_id in words
    assert not set(words.tolist()) & {base.tokenizer.cls_token_id, base.tokenizer.pad_token_id}


def test_what_is_sent_is_drawn_in_training_and_at_inference_and_special_tokens_stay():
    session, inputs, tuned = fine_tuned(SanTextPlus(epsilon=1.0, sensitive=1))
    tuned.predict(inputs.tokens["dev"], "dev")
    for split in ("train", "dev"):
        tokens = inputs.tokens[split]
        same = ids_of(session, split=split) == tokens.ids.values
        assert same[tokens.special].all()
        assert same[~tokens.special].float().mean() < 0.2


def test_attackers_read_all_without_it_and_less_with_it(tmp_path):
    defenses = SanTextPlus(epsilon=None), SanTextPlus(epsilon=1.0, sensitive=1)
    attacks = NearestNeighbour(), BayesInversion()
    open_, hidden = run(tmp_path, *defenses, attacks=attacks)
    for attack in ("eia-nn", "eia-bayes"):
        assert leak_of(open_, attack).success.value > 0.99
        assert leak_of(hidden, attack).success.value < 0.5
    assert leak_of(hidden, "eia-bayes").bound is not None
    assert open_.undefended
