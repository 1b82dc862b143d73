"""Learned inversion reads what was sent through the public mechanism."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import load_tiny

from leakboard.attacks.eia_learned import Learned, Vectorwise, codebook, framed
from leakboard.attacks.eia_map import ContextualDenoiser
from leakboard.bench.attacking import inversion
from leakboard.bench.contracts.threat import Channel, Knows
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.methods.knowledge import Auxiliary, Knowledge
from leakboard.defenses.sap import SAP


def test_plain_readers_find_all_tokens_of_minilm(minilm):
    tokens = minilm.encode(["it 's a charming and often affecting journey .", "awful ."], None, 32)
    rng = np.random.default_rng(0)

    def query(tokens, rng):
        return inversion.simulate_vectors(None, minilm, tokens, 0, rng)

    words = framed(tokens, len(minilm.embeddings), rng)
    codes = codebook(words, query, len(minilm.embeddings), rng)
    for plain in (minilm.embeddings, codes):
        found = Vectorwise(plain).read([query(tokens, rng)])
        assert found[:, 0].tolist() == tokens.ids.values.tolist()


def test_frames_hold_the_whole_vocabulary_and_keep_special_tokens():
    base = load_tiny("tiny-bert")
    public = base.encode(["the food was good", "not good"], None, 16)
    frames = framed(public, 100, np.random.default_rng(0))
    assert set(frames.ids.values[~frames.special].tolist()) == set(range(100))
    firsts = frames.ids.values[frames.ids.starts]
    assert (firsts == public.ids.values[0]).all()
    assert int((~frames.special).sum()) < 100 + 4


def test_an_untrained_network_reads_the_nearest_code_vector():
    base = load_tiny("tiny-bert")
    tokens = base.encode(["the food was good", "not good at all"], None, 16)
    vectors = base.embeddings[tokens.ids.values] + 0.01
    expected = base.neighbours.nearest(vectors).tolist()
    inverter = Vectorwise(base.embeddings)
    assert inverter.read([tokens.ids.with_values(vectors)])[:, 0].tolist() == expected


def test_nearest_code_vector_wins_and_not_the_longest():
    codes = torch.tensor([[1.0, 0.0], [3.0, 0.0], [-1.0, 2.0]])
    tokens = load_tiny("tiny-bert").encode(["good"], None, 16)
    vectors = tokens.ids.with_values(torch.tensor([[1.2, 0.1], [2.2, 0.0], [-0.5, 1.0]]))
    assert Vectorwise(codes).read([vectors])[:, 0].tolist() == [0, 1, 2]


def test_codebook_holds_the_mean_of_what_came_back_for_each_token():
    base = load_tiny("tiny-bert")
    tokens = base.encode(["good not good", "not"], None, 16)
    sent = torch.arange(len(tokens.ids.values), dtype=torch.float)[:, None] * torch.ones(2)
    by_text = dict(
        zip(tokens.lengths.tolist(), torch.split(sent, tokens.lengths.tolist()), strict=True)
    )

    def query(batch, rng):
        parts = [by_text[n] for n in batch.lengths.tolist()]
        return batch.ids.with_values(torch.cat(parts))

    found = codebook(tokens, query, len(base.embeddings), np.random.default_rng(0))
    for token in set(tokens.ids.values.tolist()):
        expected = sent[tokens.ids.values == token].mean(0)
        torch.testing.assert_close(found[token], expected)
    assert int((found.abs().sum(1) > 0).sum()) <= len(set(tokens.ids.values.tolist()))


@pytest.mark.parametrize("cut", [0, 1])
@pytest.mark.parametrize(
    "attack", [Learned(sentences=12), ContextualDenoiser(sentences=12)], ids=str
)
def test_public_texts_go_through_the_public_mechanism_with_fresh_noise_and_no_other_way(
    attack, cut, monkeypatch
):
    base, asked = load_tiny("tiny-bert"), []

    class Noted(SAP):
        """SAP that notes what it is asked to simulate."""

        def simulate(self, base, tokens, cut, rng):
            sent = super().simulate(base, tokens, cut, rng)
            asked.append((cut, sent.values.clone()))
            return sent

    public = base.encode([f"the food was good {n}" for n in range(12)], None, 16)
    knowledge = Knowledge(
        2, "cpu", cut=cut, base=base, mechanism=Noted(eta=50.0),
        auxiliary=Auxiliary(public, np.zeros(12, np.int64)), vocabulary=len(base.embeddings),
    )  # fmt: skip
    plain, original = [], base.bottom
    monkeypatch.setattr(
        type(base), "bottom", lambda self, *a, **k: plain.append(1) or original(*a, **k)
    )
    vectors = base.embeddings[public.ids.values].numpy()
    about = (Channel.REPRESENTATIONS, "train", 0, "customer", "vendor", 0, np.arange(12))
    seen = Transcript((Message(*about, vectors, public.lengths.numpy()),))
    (guess,) = attack.guess(seen, knowledge, np.random.default_rng(0))
    assert len(guess.values) == len(vectors)
    assert len(asked) > 2
    assert {at for at, _ in asked} == {cut}
    assert len(plain) == len(asked)  # the bottom is run by the mechanism and by nobody else
    drawn = [values.sum().item() for _, values in asked if len(values) > 20]
    assert len(set(drawn)) == len(drawn)


def test_with_queries_alone_an_attacker_needs_neither_weights_nor_mechanism():
    assert Learned(access="query").needs == {Knows.QUERIES, Knows.AUXILIARY_TEXT}
    assert Learned().needs == {Knows.BASE_WEIGHTS, Knows.MECHANISM, Knows.AUXILIARY_TEXT}


def test_what_was_learned_with_the_weights_reads_all_cells_of_a_mechanism_and_no_other(monkeypatch):
    base, trained, fit = load_tiny("tiny-bert"), [], inversion.fit
    monkeypatch.setattr(inversion, "fit", lambda *args: trained.append(1) or fit(*args))
    public = base.encode([f"the food was good {n}" for n in range(12)], None, 16)
    vectors = base.embeddings[public.ids.values].numpy()
    about = (Channel.REPRESENTATIONS, "train", 0, "customer", "vendor", 0, np.arange(12))
    seen = Transcript((Message(*about, vectors, public.lengths.numpy()),))

    def asked(attack, eta, seed, cut=0):
        known = Knowledge(
            2, "cpu", cut=cut, base=base, mechanism=SAP(eta=eta), auxiliary=auxiliary,
            vocabulary=len(base.embeddings), query=lambda tokens, rng: inversion.simulate_vectors(None, base, tokens, 0, rng),
        )  # fmt: skip
        attack.guess(seen, known, np.random.default_rng(seed))
        return len(trained)

    auxiliary = Auxiliary(public, np.zeros(12, np.int64))
    own, query = Learned(sentences=12), Learned(sentences=12, access="query")
    assert [asked(own, 50.0, seed) for seed in (0, 1)] == [1, 1]
    assert [asked(own, 60.0, 0), asked(own, 50.0, 0, cut=1)] == [2, 3]
    # The customer's answers in one cell are not those in another.
    assert [asked(query, 50.0, seed) for seed in (0, 1)] == [4, 5]


def test_each_round_gives_a_word_to_copy_and_ids_in_the_clear_one_for_all():
    base = load_tiny("tiny-bert")
    said = torch.tensor([[5, 9, 9, 8, 7, 6], [4, 9, 8, 8, 6, 6], [4, 3, 8, 8, 7, 6]])
    for channel, kept in ((Channel.REPRESENTATIONS, said), (Channel.TOKENS, said[:1])):
        sent = [ids if channel == Channel.TOKENS else base.embeddings[ids] for ids in said]
        seen = Transcript(
            tuple(
                Message(channel, "train", r, "customer", "vendor", 0, np.arange(1), one.numpy(), np.array([6]))
                for r, one in enumerate(sent)
            )
        )  # fmt: skip
        arrived = inversion.ReceivedWords(seen, base, None, None, channel, 0)
        (guess,) = arrived.guesses(lambda rounds, arrived=arrived: arrived.copied)
        assert guess.values.T.tolist() == kept.tolist()


def test_log_probabilities_of_rounds_add_up():
    class Scores(inversion.Inverter):
        """Takes what is received for scores."""

        def forward(self, received):
            return received.values

    tokens = load_tiny("tiny-bert").encode(["good", "not good"], None, 16)
    n = len(tokens.ids.values)
    first, second = torch.zeros(n, 3), torch.zeros(n, 3)
    first[:, 0], second[:, 1] = 1.0, 2.0  # one is a little for word 0, the other more for word 1
    rounds = [tokens.ids.with_values(values) for values in (first, second)]
    assert Scores().read(rounds[:1]).tolist() == [[0]] * n
    assert Scores().read(rounds).tolist() == [[1, 0]] * n
