"""wbc: votes of sliding windows."""

from __future__ import annotations

import pytest
import torch
from numbered_texts import numbered
from pydantic import ValidationError
from released import audited

from leakboard.attacks.ez_mia import ErrorZone
from leakboard.attacks.wbc import WindowComparison, won_share
from leakboard.bench.backbones.language import LanguageModel
from leakboard.bench.methods.attack import Silent
from leakboard.bench.methods.knowledge import Knowledge
from leakboard.bench.scoring import NEEDED, advantage_low
from leakboard.defenses.blackout import Blackout
from leakboard.defenses.none import NoDefense


def test_each_window_has_one_vote_and_sizes_count_alike():
    gain = torch.tensor([1.0, -2.0, 3.0, -0.5])
    # Windows of two: −1, 1, 2.5; of three: 2, 0.5; the text as a whole stands for larger ones.
    assert won_share(gain, [2]) == pytest.approx(2 / 3)
    assert won_share(gain, [3]) == 1
    assert won_share(gain, [2, 3]) == pytest.approx((2 / 3 + 1) / 2)
    assert won_share(-gain, [40]) == 0
    assert won_share(torch.zeros(4), [2]) == 0
    assert won_share(gain[:0], [2]) == 0


def test_members_are_found_without_protection_and_not_on_noise(monkeypatch):
    settings = {"tune": "full", "epochs": 5, "learning_rate": 5e-3}
    calls = []
    losses = LanguageModel.losses
    _, leak = audited(NoDefense(), numbered(0), WindowComparison(), **settings)
    assert leak.success.low > 0.6
    assert advantage_low(leak) >= NEEDED
    monkeypatch.setattr(
        LanguageModel, "losses", lambda self, tokens: calls.append(1) or losses(self, tokens)
    )
    counts = []
    for attacks in ((WindowComparison(),), (WindowComparison(), ErrorZone())):
        calls.clear()
        record, leak = audited(Blackout(), numbered(0), *attacks, **settings)
        counts.append(len(calls))
        assert leak.success.low <= 0.5
    # The error zone reads the losses that the windows were counted from.
    assert counts[0] == counts[1]
    assert len(record.leaks) >= 2


def test_a_classifier_has_no_tokens_and_windows_have_an_order():
    with pytest.raises(Silent, match="classifier"):
        WindowComparison().scores(None, Knowledge(2, "cpu"))
    with pytest.raises(ValidationError, match="more than most"):
        WindowComparison(least=5, most=4)
