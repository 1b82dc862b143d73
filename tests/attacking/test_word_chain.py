"""A Markov chain of words: exact sums over all texts, and what is learned from public text."""

from __future__ import annotations

from itertools import pairwise, product

import torch

from leakboard.bench.attacking import Smoothing, WordChain
from leakboard.bench.backbones.ragged import Ragged, Tokens


def tokens(texts):
    ids = Ragged.of(texts)
    return Tokens(ids, torch.zeros_like(ids.values), torch.zeros_like(ids.values, dtype=torch.bool))


PUBLIC = tokens([[5, 6, 7], [5, 6, 8], [6, 7], [5, 5, 8, 6]])
CHAIN = WordChain.learned(PUBLIC, torch.tensor([9]), 20, Smoothing(gamma=2.0, unseen=0.1))


def table(chain):
    return chain.pairs.to_dense() + chain.backing[:, None] * chain.shares


def test_every_word_is_followed_by_something_and_new_words_have_the_share_of_unseen_ones():
    torch.testing.assert_close(table(CHAIN).sum(1), torch.ones(len(CHAIN.shares)))
    # Of 16 words that public text lacks, one is a state and 15 are together in another.
    torch.testing.assert_close(CHAIN.shares[-3:-1], torch.tensor([0.1 / 16, 0.1 * 15 / 16]))
    # 6 follows 5 twice of four times; three kinds follow it.
    torch.testing.assert_close(CHAIN.backing[0], torch.tensor(2 * 3 / (4 + 2 * 3)))
    torch.testing.assert_close(CHAIN.pairs.to_dense()[0, 1], torch.tensor((1 - 0.6) * 2 / 4))


def test_posterior_and_likelihood_are_those_of_all_texts():
    generator = torch.Generator().manual_seed(0)
    n = len(CHAIN.words) + 1
    seen, lengths = torch.rand(2, 3, n, generator=generator), torch.tensor([3, 2])
    found, total = CHAIN.posterior(seen, lengths)
    p, edge, expected = table(CHAIN), len(CHAIN.shares) - 1, 0.0
    for text, length in zip(seen, lengths.tolist(), strict=True):
        sums = torch.zeros(length, n)
        for states in product(range(n), repeat=length):
            path = [edge, *states, edge]
            chance = torch.stack([p[a, b] for a, b in pairwise(path)]).prod()
            chance = (
                chance * torch.stack([text[at, state] for at, state in enumerate(states)]).prod()
            )
            for at, state in enumerate(states):
                sums[at, state] += chance
        expected += float(sums[0].sum().log())
        own = found[0 if length == 3 else 1, :length]
        torch.testing.assert_close(own, sums / sums.sum(1, keepdim=True), atol=1e-5, rtol=1e-4)
    assert abs(total - expected) < 1e-4


def test_likelihood_of_texts_is_the_mean_over_words_and_ends():
    p, at = table(CHAIN), {5: 0, 6: 1, 9: 4, 11: 5}
    path = [6, at[5], at[9], at[11], 6]
    expected = torch.stack([p[a, b] for a, b in pairwise(path)]).log().mean()
    assert abs(CHAIN.log_likelihood(Ragged.of([[5, 9, 11]])) - float(expected)) < 1e-6


def test_weight_of_pairs_is_chosen_on_texts_of_other_sources():
    # In one collection each word decides the next one; in the other no word does.
    draw = torch.Generator().manual_seed(1)
    random = torch.randint(10, 60, (100, 12), generator=draw)
    ordered = (random[:, :1] + 7 * torch.arange(12)) % 50 + 10
    gammas = [Smoothing.of(tokens(texts.tolist())).gamma for texts in (random, ordered)]
    assert gammas[0] > 4 * gammas[1], gammas


def test_share_of_new_words_is_that_in_texts_of_other_sources():
    common = torch.randint(10, 60, (300, 12), generator=torch.Generator().manual_seed(1))
    new = torch.arange(300 * 3).reshape(300, 3) + 100
    one = Smoothing.of(tokens(torch.cat([common, new], 1).tolist()))
    chain = WordChain.counted(tokens(common.tolist()).ids, common.unique(), 5000, one)
    # Three of sixteen steps lead to a new word, whichever word was before.
    assert abs(float(chain.backing[:-1].mean() * one.unseen) - 3 / 16) < 0.05


def test_one_source_leaves_the_defaults():
    assert Smoothing.of(tokens([[1, 2, 3]] * 4)) == Smoothing()
