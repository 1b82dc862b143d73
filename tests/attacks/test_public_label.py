"""public-label: what public labelled texts tell of the customers' labels."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from cells import fine_tuned, leak_of, load_tiny, run

from leakboard.attacks import public_label
from leakboard.attacks.public_label import Classifier, PublicLabel, retokenised, words_of
from leakboard.bench.backbones import Backbone
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.threat import Channel, Knows
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.methods.attack import Silent
from leakboard.bench.methods.combination import combine
from leakboard.bench.methods.knowledge import Auxiliary, Knowledge
from leakboard.bench.scoring import NEEDED, advantage_low
from leakboard.defenses.blackout import Blackout
from leakboard.defenses.frozen import Frozen
from leakboard.defenses.randomised_response import RandomisedResponse, randomised
from leakboard.defenses.sap import SAP

BASE = "tiny-bert"
SURE, UNSURE = "good good good", "the food"


def public(labels=True):
    texts = ["good film", "good food", "good service"] * 8 + ["bad film", "bad food", "bad"] * 8
    known = np.repeat([1, 0], 24) if labels else np.zeros(0, np.int64)
    return Auxiliary(load_tiny(BASE).encode(texts, None, 16), known)


def knowledge_of(mechanism=None, labels=True, cut=0):
    base = load_tiny(BASE)
    return Knowledge(
        2, "cpu", cut=cut, base=base, mechanism=mechanism, auxiliary=public(labels), vocabulary=1
    )


def message(channel, values, lengths=None, rows=None):
    rows = np.arange(len(values) if lengths is None else len(lengths)) if rows is None else rows
    return Message(channel, "train", 0, "customer", "vendor", 0, rows, np.asarray(values), lengths)


def ids_of(*texts):
    tokens = load_tiny(BASE).encode(texts, None, 16)
    return message(Channel.TOKENS, tokens.ids.values.numpy(), tokens.lengths.numpy())


def guessed(knowledge, *messages, **params):
    rng = np.random.default_rng(0)
    (guess,) = PublicLabel(**params).guess(Transcript(messages), knowledge, rng)
    return guess.values.tolist()


def test_words_decide_where_they_are_clear_and_the_randomised_label_where_they_are_not():
    text = ids_of(SURE, SURE, UNSURE, UNSURE)
    labels = message(Channel.LABELS, [0, 1, 0, 1])
    with_law = knowledge_of(RandomisedResponse(epsilon=1.0))
    assert guessed(with_law, text, labels) == [1, 1, 0, 1]
    alone = guessed(knowledge_of(), text, labels)
    assert alone[:2] == [1, 1]
    assert alone[2] == alone[3]
    assert guessed(knowledge_of(RandomisedResponse(epsilon=20.0)), text, labels) == [0, 1, 0, 1]


class OtherWords(SAP):
    """Sends a word that public texts lack for each that tells the label."""

    name = "other-words"
    told: ClassVar[dict[str, str]] = {"good": "great", "bad": "order"}

    def simulate(self, base, tokens, cut, rng):
        ids = tokens.ids.values.clone()
        for word, other in self.told.items():
            ids[ids == word_id(word)] = word_id(other)
        return tokens.with_ids(ids).ids.embedded(base.embeddings)


def word_id(word):
    return int(load_tiny(BASE).encode([word], None, 8).ids.values[1])


def test_a_fine_tuned_copy_learns_the_words_that_the_mechanism_makes_of_public_texts():
    sent = ["great", "order"] * 3
    tokens = load_tiny(BASE).encode(sent, None, 16)
    vectors = load_tiny(BASE).embeddings[tokens.ids.values].numpy()
    received = message(Channel.REPRESENTATIONS, vectors, tokens.lengths.numpy())
    mechanism = OtherWords(eta=50)
    assert guessed(knowledge_of(mechanism), received) != [1, 0] * 3
    assert guessed(knowledge_of(mechanism), received, epochs=150) == [1, 0] * 3
    for params in ({"precision": "bf16"}, {"model": "tiny-roberta"}):
        assert guessed(knowledge_of(mechanism), received, epochs=150, **params) == [1, 0] * 3


def test_another_model_reads_the_same_texts_pair_by_pair():
    base, reader = load_tiny(BASE), load_tiny("tiny-roberta")
    texts, pairs = ["good order", "bad"], ["great", "good good"]
    for second in (None, pairs):
        plain = words_of(base.encode(texts, second, 16).ids, base)
        told, expected = retokenised(plain, base, reader), reader.encode(texts, second, 16)
        assert told.ids.sequences() == expected.ids.sequences()


def test_a_model_that_is_missing_or_unknown_is_told_before_the_run(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(LeakboardError, match="leakboard model get mpnet"):
        run(tmp_path, Frozen(), attacks=(PublicLabel(epochs=1, model="mpnet"),))
    with pytest.raises(ValueError, match=r"unknown model 'mpnte'\. Did you mean 'mpnet'"):
        PublicLabel(epochs=1, model="mpnte")


def test_seeds_share_the_fine_tuned_copy_and_mechanisms_do_not(monkeypatch):
    tuned, plain = [], PublicLabel._tuned
    monkeypatch.setattr(PublicLabel, "_tuned", lambda *given: tuned.append(given) or plain(*given))
    knowledge, text = knowledge_of(OtherWords(eta=50)), ids_of(SURE)
    guessed(knowledge, text, epochs=1)
    guessed(knowledge, text, epochs=1)
    guessed(replace(knowledge, mechanism=RandomisedResponse(epsilon=1.0)), text, epochs=1)
    assert len(tuned) == 1  # the words of all three are sent in the clear
    vectors = load_tiny(BASE).embeddings[[word_id("great")]].numpy()
    received = message(Channel.REPRESENTATIONS, vectors, np.array([1]))
    both = combine(OtherWords, Frozen)(eta=50)
    for mechanism in (OtherWords(eta=50), OtherWords(eta=50), both, OtherWords(eta=75)):
        guessed(replace(knowledge, mechanism=mechanism), received, epochs=1)
    assert len(tuned) == 3
    guessed(replace(knowledge, mechanism=both), received, epochs=1, model="tiny-roberta")
    assert len(tuned) == 4


def test_gradients_form_clusters_that_the_words_name():
    text = ids_of(*["good film", "bad film"] * 10, UNSURE, UNSURE)
    sides = np.array([1, -1] * 10 + [1, -1])
    gradients = sides[:, None] * np.random.default_rng(0).uniform(0.5, 1, (22, 1)) * np.ones(4)
    sent = message(Channel.GRADIENTS, gradients.astype(np.float32))
    mechanism = RandomisedResponse(epsilon=3.0)
    assert guessed(knowledge_of(mechanism), text, sent) == [1, 0] * 11


def test_gradients_of_all_rounds_are_read_and_not_only_those_of_some_windows():
    text = ids_of(*["good film", "bad film"] * 10, UNSURE, UNSURE)
    gradients = np.array([1, -1] * 10 + [1, -1], np.float32)[:, None] * np.ones(4, np.float32)
    sent = message(Channel.GRADIENTS, gradients)
    window = replace(sent, rows=sent.rows[:4], values=sent.values[:4], moment=0)
    mechanism = RandomisedResponse(epsilon=3.0)
    assert guessed(knowledge_of(mechanism), text, sent, window)[-2:] == [1, 0]


def test_vectors_are_read_as_the_nearest_words_and_not_behind_a_block():
    base = load_tiny(BASE)
    tokens = base.encode(["good film", "bad food"], None, 16)
    vectors = base.embeddings[tokens.ids.values].numpy() + 1e-4
    sent = message(Channel.REPRESENTATIONS, vectors, tokens.lengths.numpy())
    assert guessed(knowledge_of(), sent) == [1, 0]
    assert PublicLabel().readable(1) == {Channel.TOKENS}
    assert PublicLabel().guess(Transcript((sent,)), knowledge_of(cut=1), None) == []


def test_hidden_states_and_all_rounds_count():
    base = load_tiny(BASE)
    known, unknown, other = (base.encode([t], None, 16) for t in ("good film", "the", "slow"))
    classifier = Classifier.of(public(), base)

    def odds(*rounds):
        return np.diff(classifier.log_probabilities(rounds, 2)).item()

    # Both words are not in public text, so that they differ by their hidden states alone.
    assert odds(unknown) != pytest.approx(odds(other), abs=0.01)
    assert odds(known, other) == pytest.approx(odds(other, known))


@pytest.mark.parametrize(("model", "blocks"), [("tiny-bert", 1), ("tiny-deep-bert", 2)])
def test_with_many_public_texts_a_third_of_the_blocks_is_computed_and_at_least_one(
    model, blocks, monkeypatch
):
    base = load_tiny(model)
    tokens = base.encode(["good film", "the slow food was bad"], None, 16)
    known = Auxiliary(tokens, np.array([1, 0]))
    words = tokens.ids.embedded(base.embeddings)
    for many, read in ((3, base.blocks), (2, blocks)):
        monkeypatch.setattr(public_label, "MANY", many)
        classifier = Classifier.of(known, base)
        expected = base.bottom(words, tokens.types, read).means().numpy()
        assert classifier.scale.mean_ == pytest.approx(expected.mean(0), abs=1e-5)
        features = classifier.features([tokens]).toarray()[:, -base.width :]
        scaled = classifier.scale.transform(expected) / np.sqrt(base.width)
        assert features == pytest.approx(scaled, abs=1e-4)


def test_what_it_knows_and_that_it_needs_labels_of_public_text():
    assert Knows.MECHANISM in PublicLabel().needs
    assert Knows.MECHANISM not in PublicLabel(combine=False).needs
    with pytest.raises(Silent, match="labels of the public text"):
        guessed(knowledge_of(labels=False), ids_of(SURE))


def test_bayes_beats_words_and_randomised_labels_alone():
    fields = {"limit": 400, "record": {"examples": 400}, "train": {"epochs": 1}}
    session, inputs, _ = fine_tuned(RandomisedResponse(epsilon=1.0), **fields)
    seen = session.wire.transcript()
    base = load_tiny(BASE)
    known = Knowledge(
        2, "cpu", base=base, auxiliary=inputs.public["own"], mechanism=RandomisedResponse(epsilon=1)
    )
    truth = session.labels.numpy()
    both = np.mean(np.array(guessed_all(known, seen)) == truth)
    alone = np.mean(np.array(guessed_all(known, seen, combine=False)) == truth)
    said = randomised(truth, 2, 1.0, np.random.default_rng(0))
    assert both >= max(alone, np.mean(said == truth)) - 0.02


def guessed_all(knowledge, seen, combine=True):
    mechanism = knowledge.mechanism if combine else None
    known = Knowledge(
        2, "cpu", base=knowledge.base, auxiliary=knowledge.auxiliary, mechanism=mechanism
    )
    (guess,) = PublicLabel().guess(seen, known, np.random.default_rng(0))
    return guess.values


def test_it_reads_what_frozen_and_sap_send_and_nothing_of_noise(tmp_path):
    fields = {"limit": 500, "attacks": (PublicLabel(),), "record": {"examples": 500}}
    records = run(tmp_path, Frozen(), SAP(eta=None), Blackout(), **fields)
    found = {r.cell.defense.name: leak_of(r, "public-label", goal="label") for r in records}
    for name in ("frozen", "sap"):
        assert advantage_low(found[name]) >= NEEDED
    assert found["frozen"].success.value == found["sap"].success.value
    assert found["blackout"].success.low <= found["blackout"].success.chance


def test_cells_of_all_seeds_share_one_classifier_and_no_text_is_encoded_twice(
    tmp_path, monkeypatch
):
    fitted, encoded, fit, encode = [], [], Classifier.of, Backbone._pooled

    def counting_fit(public, base):
        fitted.append(public)
        return fit(public, base)

    def counting_encode(base, tokens, blocks):
        encoded.append((tokens.digest, blocks))
        return encode(base, tokens, blocks)

    monkeypatch.setattr(Classifier, "of", counting_fit)
    monkeypatch.setattr(Backbone, "_pooled", counting_encode)
    fields = {"limit": 100, "attacks": (PublicLabel(),), "seeds": (0, 1)}
    records = run(tmp_path, SAP(eta=60.0), SAP(eta=50.0), **fields)
    assert sum(leak_of(r, "public-label", goal="label").success is not None for r in records) >= 4
    assert len(fitted) == 1
    assert len(encoded) == len(set(encoded))
