"""The baseline that guesses from public frequencies."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import leak_of, load_tiny, run
from label_attacks import sent

from leakboard.attacks.prior import Prior
from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.methods.knowledge import Auxiliary, Knowledge
from leakboard.defenses.blackout import Blackout


def test_prior_reaches_the_chance_level_where_public_frequencies_are_those_of_the_data(tmp_path):
    # All of `reviews`: the most frequent token is the same in public and private text.
    (record,) = run(tmp_path, Blackout(), limit=2000, record={"examples": 1000})
    for view in ("train", "dev"):
        success = leak_of(record, "prior", view).success
        assert success.value == pytest.approx(success.chance, abs=1e-12)


def test_what_is_most_frequent_in_public_text_is_guessed_and_nothing_else_is_used():
    base = load_tiny("tiny-bert")
    tokens = base.encode(["good", "good not", "the food was"], None, 16)
    (often,) = base.encode(["good"], None, 16).ids.values[1:-1].tolist()
    counts = torch.bincount(tokens.ids.values)
    assert counts.argmax() != often  # of all tokens; special ones are in every text
    public = Auxiliary(
        tokens, np.array([2, 2, 0]), {"age": np.array([-1, -1, 1]), "sex": -np.ones(3, int)}
    )
    about = (Channel.TOKENS, "train", 0, "customer", "vendor", 0)
    ids = Message(*about, np.array([4, 7]), np.array([9, 9, 9]), np.array([1, 2]))
    released = Message(
        *(Channel.MODEL, "train", 0, "customer", "public", 0),
        np.zeros(1, int),
        np.zeros((1, 3)),
        None,
    )
    knowledge = Knowledge(3, "cpu", auxiliary=public)
    seen = Transcript((ids, released, sent(np.zeros((1, 2)), rows=np.array([11]))))
    guesses = Prior().guess(seen, knowledge, np.random.default_rng(0))
    words, label, age = guesses
    assert words.values.tolist() == [often] * 3
    assert words.lengths.tolist() == [1, 2]
    assert (label.goal, label.rows.tolist(), label.values.tolist()) == (Goal.LABEL, [4, 7], [2, 2])
    assert (age.attribute, age.values.tolist()) == ("age", [1, 1])
    assert {guess.channel for guess in guesses} == {None}
