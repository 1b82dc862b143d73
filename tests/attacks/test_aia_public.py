"""Attributes learned from public texts that went through the mechanism, and from nothing of the customers'."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from cells import load_tiny

from leakboard.attacks.aia_public import PublicAttributes
from leakboard.bench.contracts.threat import Channel, Knows
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.defending.pooled_noise import as_sequences
from leakboard.bench.methods.attack import Silent
from leakboard.bench.methods.knowledge import Auxiliary, Knowledge
from leakboard.defenses.cape import CAPE
from leakboard.defenses.dpnr import DPNR
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP

WORDS = ("good", "food", "service", "staff", "room")


@pytest.fixture(scope="module")
def base():
    return load_tiny("tiny-bert")


def written(base, n, seed):
    """Texts of authors of two kinds, of whom one says 'not' and the other 'was', and who wrote each."""
    rng = np.random.default_rng(seed)
    authors = rng.integers(2, size=n)
    said = (" ".join(["the", *rng.choice(WORDS, 3), ("not", "was")[a]]) for a in authors)
    return base.encode(list(said), None, 16), authors


def attacked(base, defense, authors=None, **fields):
    """The share of customers whose kind is found, and the guess."""
    texts, truth = written(base, 150, 0)
    public, theirs = written(base, 200, 1)
    # Trained layers cannot be simulated: here they let the pooled vector pass.
    sent = defense.simulate(base, texts, 0, np.random.default_rng(2))
    sent = as_sequences(base.pooled(texts)) if sent is None else sent
    pooled = isinstance(defense, DPNR | CAPE)
    channel = Channel.ACTIVATIONS if pooled else Channel.REPRESENTATIONS
    lengths = None if pooled else sent.lengths.numpy()
    where = (channel, "train", 0, "customer", "vendor", 0, np.arange(len(texts)))
    seen = Transcript((Message(*where, sent.values.numpy(), lengths),))
    told = Auxiliary(public, theirs, {"kind": theirs if authors is None else authors})
    knowledge = Knowledge(2, "cpu", base=base, mechanism=defense, auxiliary=told)
    knowledge = replace(knowledge, query=fields.pop("query", None))
    (guess,) = PublicAttributes(**fields).guess(seen, knowledge, np.random.default_rng(3))
    assert (guess.attribute, guess.rows.tolist()) == ("kind", list(range(150)))
    return float((guess.values == truth).mean())


@pytest.mark.parametrize("defense", [SAP(eta=None), SAP(eta=400.0), DPNR(epsilon=50.0)], ids=str)
def test_who_wrote_a_text_is_learned_from_public_texts_alone(base, defense):
    assert attacked(base, defense) > 0.9
    # Of kinds that have nothing to do with what they wrote it learns nothing.
    chance = np.random.default_rng(4).integers(2, size=200)
    assert attacked(base, defense, chance) < 0.7


def test_its_own_texts_go_through_the_mechanism_with_noise_of_its_own(base, monkeypatch):
    drawn = []
    noise = DPNR.noise

    def noted(self, n, width, rng):
        drawn.append(n)
        return noise(self, n, width, rng)

    monkeypatch.setattr(DPNR, "noise", noted)
    attacked(base, DPNR(epsilon=5.0))
    assert drawn == [150, 200]
    drawn.clear()
    attacked(base, DPNR(epsilon=5.0), np.zeros(200, int)[:90], sentences=90)
    assert drawn == [150, 90]


def test_the_encoder_is_asked_once_for_all_strengths_of_noise(base, monkeypatch):
    asked = []
    encoded = DPNR.public_vectors

    def noted(self, base, tokens, rng):
        asked.append(self.dropout)
        return encoded(self, base, tokens, rng)

    monkeypatch.setattr(DPNR, "public_vectors", noted)
    tokens, authors = written(base, 20, 0)
    told = Auxiliary(tokens, authors, {"kind": authors})
    sent = as_sequences(base.pooled(tokens))
    where = (Channel.ACTIVATIONS, "train", 0, "customer", "vendor", 0, np.arange(20))
    seen = Transcript((Message(*where, sent.values.numpy(), None),))
    settings = [(1.0, 0.0), (5.0, 0.0), (None, 0.0), (5.0, 0.5)]
    for epsilon, dropout in settings:
        mechanism = DPNR(epsilon=epsilon, dropout=dropout)
        knowledge = Knowledge(2, "cpu", base=base, mechanism=mechanism, auxiliary=told)
        PublicAttributes().guess(seen, knowledge, np.random.default_rng(0))
    assert asked == [0.0, 0.5]


def test_trained_layers_are_asked_and_not_guessed(base):
    with pytest.raises(Silent, match="access: query"):
        attacked(base, CAPE(epsilon=None))
    asked = []

    def query(tokens, rng):
        asked.append(len(tokens))
        return as_sequences(base.pooled(tokens))

    assert attacked(base, CAPE(epsilon=None), access="query", query=query) > 0.9
    assert asked == [200]
    assert PublicAttributes(access="query").needs == {
        *(Knows.QUERIES, Knows.AUXILIARY_TEXT, Knows.BASE_WEIGHTS)
    }
    assert Knows.QUERIES not in PublicAttributes().needs


def test_what_is_of_another_width_or_without_authors_is_not_guessed(base):
    def narrow(tokens, rng):
        return as_sequences(torch.zeros(len(tokens), 3))

    with pytest.raises(Silent, match="numbers per text"):
        attacked(base, DPNR(), access="query", query=narrow)
    tokens, _ = written(base, 4, 0)
    values = np.zeros((4, base.width), np.float32)
    where = (Channel.ACTIVATIONS, "train", 0, "customer", "vendor", 0, np.arange(4))
    seen = Transcript((Message(*where, values, None),))
    told = Auxiliary(tokens, np.zeros(4, int))
    knowledge = Knowledge(2, "cpu", base=base, mechanism=NoDefense(), auxiliary=told)
    with pytest.raises(Silent, match="authors of the public text"):
        PublicAttributes().guess(seen, knowledge, np.random.default_rng(0))
    told = Auxiliary(tokens, np.zeros(4, int), {"kind": np.zeros(4, int)})
    with pytest.raises(Silent, match="no mechanism"):
        PublicAttributes().guess(seen, replace(knowledge, auxiliary=told), np.random.default_rng(0))


@pytest.mark.parametrize("authors", [[1] * 200, [0] + [1] * 199], ids=["one kind", "one author"])
def test_where_public_text_cannot_teach_the_most_frequent_kind_is_guessed(base, authors):
    _, truth = written(base, 150, 0)
    found = attacked(base, SAP(eta=None), np.array(authors))
    assert found == pytest.approx((truth == 1).mean())
