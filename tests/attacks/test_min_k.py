"""Min-K%++: standings of tokens worked by hand, members found, and what it cannot read."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import load_tiny
from numbered_texts import numbered
from released import audited

from leakboard.attacks.min_k import MinK, standardised_log_probs
from leakboard.bench.backbones.language import LanguageModel
from leakboard.bench.contracts.cell import TrainSettings
from leakboard.bench.methods.attack import Silent
from leakboard.bench.methods.knowledge import Auxiliary, Knowledge
from leakboard.bench.scoring import NEEDED, advantage_low
from leakboard.defenses.blackout import Blackout
from leakboard.defenses.none import NoDefense


@pytest.fixture(scope="module")
def known():
    base = load_tiny("tiny-gpt2")
    tokens = base.encode(["the food was good", "not", "we will call"], None, 16, opened=True)
    network = LanguageModel(base, TrainSettings()).eval()
    return Knowledge(0, "cpu", base=base, candidates=Auxiliary(tokens, np.zeros(3, int))), network


@torch.no_grad()
def by_hand(network, tokens):
    """Of each text the numbers of its tokens, from the definition."""
    found = []
    for row in range(len(tokens)):
        own = tokens.take(torch.tensor([row]))
        p = network(own)[0].double().softmax(-1).numpy()
        ids = own.ids.values.tolist()
        numbers = []
        for place, word in enumerate(ids[1:]):
            logs = np.log(p[place])
            mean = np.average(logs, weights=p[place])
            spread = np.sqrt(np.average((logs - mean) ** 2, weights=p[place]))
            numbers.append((logs[word] - mean) / spread)
        found.append(numbers)
    return found


def test_tokens_stand_where_the_definition_has_them(known):
    knowledge, network = known
    tokens = knowledge.candidates.tokens
    with torch.no_grad():
        standing, mask = standardised_log_probs(network, tokens)
    for own, there, numbers in zip(standing, mask, by_hand(network, tokens), strict=True):
        assert own[there].numpy() == pytest.approx(numbers, abs=1e-3)


@pytest.mark.parametrize("k", [0.2, 0.5, 1.0])
def test_a_text_has_the_mean_of_its_least_likely_tokens_one_at_least(known, k):
    knowledge, network = known
    with torch.no_grad():
        scores = MinK(k=k).scores(network, knowledge)
    expected = [
        np.mean(sorted(numbers)[: int(np.ceil(k * len(numbers)))])
        for numbers in by_hand(network, knowledge.candidates.tokens)
    ]
    assert scores == pytest.approx(expected, abs=1e-3)


def test_members_are_found_without_protection_and_not_on_noise():
    settings = {"tune": "full", "epochs": 5, "learning_rate": 5e-3}
    _, leak = audited(NoDefense(), numbered(0), MinK(), **settings)
    assert leak.success.low > 0.6
    assert advantage_low(leak) >= NEEDED
    _, leak = audited(Blackout(), numbered(0), MinK(), **settings)
    assert leak.success.low <= 0.5


def test_a_classifier_has_no_tokens_to_read():
    with pytest.raises(Silent, match="classifier"):
        MinK().scores(None, Knowledge(2, "cpu"))
