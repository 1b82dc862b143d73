"""Just fine-tune twice: redacted texts first, the originals with noise after them."""

from __future__ import annotations

import torch
from cells import load_tiny
from released import TEXTS, plan_of, run

from bench.defending import private_training
from bench.defending.redaction import all_secrets
from bench.exchange import released
from bench.tasks.spans import Span
from defenses.jft import JFT


def test_jft_shows_phase_one_redacted_texts_and_phase_two_the_originals(monkeypatch):
    shown: list = []
    backbone = load_tiny("tiny-gpt2")
    names = backbone.tokenizer.convert_tokens_to_ids(["parcel", "refund"])
    train, private = released.train, private_training.Private.train_privately

    def watched(session, network, tokens, *args, **kwargs):
        shown.append(("plain", bool(torch.isin(tokens.ids.values, torch.tensor(names)).any())))
        return train(session, network, tokens, *args, **kwargs)

    def watched_private(self, session, network, tokens, rows):
        shown.append(("dp", bool(torch.isin(tokens.ids.values, torch.tensor(names)).any())))
        return private(self, session, network, tokens, rows)

    monkeypatch.setattr(released, "train", watched)
    monkeypatch.setattr(private_training.Private, "train_privately", watched_private)
    assert run(plan_of(JFT(detector="exact", epsilon=8))).status == "ok"
    assert shown == [("plain", False), ("dp", True)]


def test_hand_checked_texts_hold_no_secret_that_is_known():
    split, canary = TEXTS.splits["train"], Span(12, 18, "canary")
    found = all_secrets(split, {0: canary}, [()] * len(split))
    assert found[0] == (Span(5, 11, "name"), canary)
    assert found[1] == (Span(5, 11, "name"),)
