"""The loop of DP-SGD as it is, on canaries that nothing but its noise hides: what is broken in it is caught."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from cells import session_of
from torch import nn

from leakboard.bench.conformance.worst_case import LONG, SLOW, Unclipped
from leakboard.bench.defending import dp_sgd
from leakboard.bench.exchange import model_release
from leakboard.bench.scoring import one_run
from leakboard.defenses.dpsgd import DPSGD

CANARIES, STEPS = 1000, 4


class Head(nn.Module):
    """A classifier on features that are a direction of its own for each canary."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(CANARIES, 2, bias=False)
        nn.init.zeros_(self.head.weight)

    def trained(self):
        return list(self.parameters())


class Halved(dp_sgd.PrivateGradients):
    """With half of the noise that the claim asks for."""

    def __init__(self, module, clip, sigma, *rest):
        super().__init__(module, clip, sigma / 2, *rest)


def audited(kind, monkeypatch):
    """What an audit proves of `Private.train_privately` by the gradients that it hands to the optimiser."""
    train = {"tune": "head", "epochs": STEPS, "batch_size": CANARIES, "learning_rate": SLOW}
    session, _ = session_of(DPSGD(), limit=4, train=train)
    rng = np.random.default_rng(0)
    member, label = rng.random(CANARIES) < 0.5, rng.integers(2, size=CANARIES)
    session = replace(session, labels=torch.from_numpy(label))
    tokens = session.train.take(torch.zeros(CANARIES, dtype=torch.int64))
    features, seen = torch.eye(CANARIES) * LONG, []

    class Watched(kind):
        def release(self):
            super().release()
            seen.append(self.trained[0].grad.clone())

    monkeypatch.setattr(model_release, "_features", lambda *_: features)
    monkeypatch.setattr(dp_sgd, "PrivateGradients", Watched)
    rows = torch.from_numpy(np.flatnonzero(member))
    claim = DPSGD(epsilon=8).train_privately(session, Head(), tokens, rows)
    assert len(seen) == claim.parameters["steps"] == STEPS
    # A gradient lowers the score of the label it stands for and raises that of the other.
    signs = np.where(label == 1, 1, -1)
    scores = ((seen_ := torch.stack(seen).sum(0).numpy())[0] - seen_[1]) * signs
    return one_run.audit(scores, member, *one_run.claim_terms(claim), guesses=[CANARIES // 4])


def test_the_loop_as_it_is_is_not_accused(monkeypatch):
    assert 1 < audited(dp_sgd.PrivateGradients, monkeypatch) < 8


@pytest.mark.parametrize("kind", [Halved, Unclipped], ids=["noise halved", "clipping skipped"])
def test_a_loop_with_half_its_noise_or_without_clipping_is_caught(kind, monkeypatch):
    assert audited(kind, monkeypatch) > 8
