"""Stained glass: noise whose mean and variance are learnt from the sequence, before anything is sent."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import fine_tuned, leak_of, run
from torch.distributions import Independent, Normal, kl_divergence

from leakboard.attacks.eia_learned import Learned
from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.methods.method import Conditions
from leakboard.defenses.sap import SAP
from leakboard.defenses.stained_glass import Glass, StainedGlass, information

HIDING = {"weight": 1.0, "passes": 6}
SMALL = {"limit": 32, "train": {"epochs": 1, "batch_size": 8}}


@pytest.fixture(scope="module")
def hidden():
    """A fine-tuning under learnt noise."""
    return fine_tuned(StainedGlass(**HIDING), **SMALL)


def test_without_a_weight_the_messages_are_those_of_sap_without_noise():
    ours, theirs = (
        fine_tuned(one, **SMALL)[0].wire.transcript().collect(Channel.REPRESENTATIONS).values
        for one in (StainedGlass(weight=None), SAP(eta=None))
    )
    assert np.array_equal(ours, theirs)
    twins = StainedGlass(**HIDING).twins("classification")
    assert twins == (StainedGlass(weight=None, passes=6), SAP(eta=None))


def test_each_text_is_sent_once_and_special_tokens_as_they_are(hidden):
    session, _, _ = hidden
    sent = session.wire.transcript().collect(Channel.REPRESENTATIONS)
    clean = session.train.ids.embedded(session.backbone.embeddings).values.numpy()
    special = session.train.special.numpy()
    assert np.array_equal(sent.values[special], clean[special])
    assert (np.abs(sent.values - clean)[~special].max(1) > 0).all()
    assert session.wire.transcript().rounds(Channel.REPRESENTATIONS) == [0]
    plain, _, _ = fine_tuned(SAP(eta=None), **SMALL)
    assert session.wire.bytes_up == plain.wire.bytes_up  # training the network sends nothing


def test_one_word_has_other_noise_in_another_sequence(tiny):
    torch.manual_seed(0)
    glass = Glass(tiny.width, 0.5)
    torch.nn.init.normal_(glass.outer.weight)
    tokens = tiny.encode(["good film", "good food was served late"], None, 16, None)
    words = tokens.ids.embedded(tiny.embeddings)
    mean, spread = glass(words)
    first, second = 1, int(tokens.lengths[0]) + 1
    assert tokens.ids.values[first] == tokens.ids.values[second]
    assert not torch.allclose(mean[first], mean[second], atol=1e-3)
    assert not torch.allclose(spread[first], spread[second], atol=1e-3)


def test_information_is_the_distance_to_other_words_alone():
    torch.manual_seed(1)
    mean, spread = torch.randn(4, 3), torch.rand(4, 3) + 0.5
    ids = torch.tensor([5, 5, 6, 7])
    laws = [Independent(Normal(m, s), 1) for m, s in zip(mean, spread, strict=True)]
    expected = []
    for i, law in enumerate(laws):
        others = [kl_divergence(law, laws[j]).neg().exp() for j in range(4) if ids[j] != ids[i]]
        expected.append(-torch.stack(others).mean().log())
    found = information(mean, spread, ids)
    assert found.item() == pytest.approx(torch.stack(expected).mean().item(), rel=1e-4)
    wide = information(mean, 10 * spread, ids)
    assert wide < found
    assert (
        information(mean, spread, torch.zeros(4)) == 0
    )  # one word alone has nothing to be taken for


def test_larger_weights_hide_more_from_who_learns_by_queries(tmp_path):
    attacks = (NearestNeighbour(), Learned(access="query", sentences=60))
    settings = [StainedGlass(weight=w, passes=6) for w in (None, 1.0)]
    off, on = run(tmp_path, *settings, attacks=attacks, limit=32)
    for attack in ("eia-nn", "eia-learned"):
        assert leak_of(off, attack).success.value > 0.9
        assert leak_of(on, attack).success.value < 0.5
    assert off.undefended
    assert not on.undefended


def test_questions_of_others_are_answered_by_the_trained_network(hidden):
    session, inputs, tuned = hidden
    dev = inputs.tokens["dev"]
    one, two, again = (tuned.sends(dev, np.random.default_rng(seed)).values for seed in (0, 1, 0))
    assert torch.equal(one, again)
    assert not torch.equal(one, two)
    clean = dev.ids.embedded(session.backbone.embeddings).values
    assert torch.equal(one[dev.special], clean[dev.special])


def test_a_cut_behind_a_block_is_refused():
    assert "set cut: 0" in StainedGlass().skip(Conditions(cut=1))
