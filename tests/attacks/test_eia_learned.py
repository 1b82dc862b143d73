"""Learned inversion reads what was sent through the public mechanism."""

from __future__ import annotations

import numpy as np
from cells import load_tiny

from attacks.eia_learned import Vectorwise, codebook, framed
from bench.attacking import inverting


def test_plain_readers_find_all_tokens_of_minilm(minilm):
    tokens = minilm.encode(["it 's a charming and often affecting journey .", "awful ."], None, 32)
    rng = np.random.default_rng(0)

    def query(tokens, rng):
        return inverting.received(None, minilm, tokens, 0, rng)

    words = framed(tokens, len(minilm.embeddings), rng)
    codes = codebook(words, query, len(minilm.embeddings), rng)
    for plain in (minilm.embeddings, codes):
        found = Vectorwise(plain).read([query(tokens, rng)])
        assert found.tolist() == tokens.ids.values.tolist()


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
    assert inverter.read([tokens.ids.with_values(vectors)]).tolist() == expected
