"""Labels from where they were sent."""

from __future__ import annotations

import numpy as np
import torch
from cells import session_of

from leakboard.attacks.clear_label import ClearLabel
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.methods.knowledge import Knowledge
from leakboard.defenses.blackout import Blackout


def guessed(seen, classes=2):
    (guess,) = ClearLabel().guess(seen, Knowledge(classes, "cpu"), np.random.default_rng(0))
    return guess


def test_it_says_what_was_sent_and_nothing_that_is_no_class():
    rows, labels = np.array([4, 1, 3]), np.array([2, 0, 7])
    sent = Message(Channel.LABELS, "train", 0, "customer", "vendor", 0, rows, labels)
    guess = guessed(Transcript((sent,)), classes=3)
    assert guess.rows.tolist() == [1, 3, 4]
    assert guess.values.tolist() == [0, 2, 2]
    assert guess.channel == Channel.LABELS


def test_blackout_sends_coins_in_the_place_of_labels():
    session, _ = session_of(Blackout(), limit=400)
    Blackout().fine_tune(session)
    guess = guessed(session.wire.transcript())
    truth = session.labels[torch.from_numpy(guess.rows)].numpy()
    assert len(truth) > 300
    assert abs(np.mean(guess.values == truth) - 0.5) < 0.1
