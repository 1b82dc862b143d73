"""The error zone: its score worked by hand, members found, and what it cannot read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from cells import load_tiny
from numbered_texts import numbered
from released import audited

from leakboard.attacks.ez_mia import ErrorZone
from leakboard.bench.backbones.language import LanguageModel
from leakboard.bench.backbones.ragged import Ragged, Tokens
from leakboard.bench.contracts.cell import TrainSettings
from leakboard.bench.methods.attack import Silent
from leakboard.bench.methods.knowledge import Auxiliary, Knowledge
from leakboard.bench.scoring import NEEDED, advantage_low
from leakboard.defenses.blackout import Blackout
from leakboard.defenses.none import NoDefense


@torch.no_grad()
def test_what_rose_stands_to_what_fell_where_the_model_errs():
    base = load_tiny("tiny-gpt2")

    def network() -> LanguageModel:
        return LanguageModel(base, TrainSettings(tune="full")).eval()

    torch.manual_seed(0)
    released = network()
    for parameter in released.parameters():
        parameter += 0.3 * torch.randn_like(parameter)

    def text(first: int) -> list[int]:
        """Eight tokens of which the released model predicts every other one."""
        ids = [first]
        while len(ids) < 8:
            own = Tokens(Ragged.of([ids]), torch.zeros(len(ids), dtype=int), torch.zeros(len(ids)))
            best = int(released(own)[0, -1].argmax())
            ids.append(best if len(ids) % 2 else (best + 7) % len(base.embeddings))
        return ids

    flat = torch.zeros(24, dtype=int)
    tokens = Tokens(Ragged.of([text(first) for first in (5, 6, 7)]), flat, flat.bool())
    knowledge = Knowledge(
        0, "cpu", base=base, network=network, candidates=Auxiliary(tokens, np.zeros(3, int))
    )
    expected, predicted = [], 0
    for row in range(3):
        own = tokens.take(torch.tensor([row]))
        ids = own.ids.values.tolist()[1:]
        after, before = (
            model(own)[0, :-1].log_softmax(-1) for model in (released, network().eval())
        )
        rose = fell = 1.0
        for place, word in enumerate(ids):
            change = float(after[place, word] - before[place, word])
            if int(after[place].argmax()) == word:
                predicted += 1
            elif change > 0:
                rose += change
            else:
                fell -= change
        expected.append(np.log(rose / fell))
    assert predicted >= 9
    assert ErrorZone().scores(released, knowledge) == pytest.approx(expected, abs=1e-4)
    # Another defense with the same candidates, which it shortens.
    short = tokens.take(torch.tensor([0])).ids.values[:5]
    shorter = Tokens(Ragged.of([short.tolist()] * 3), flat[:15], flat[:15].bool())
    masking = replace(knowledge, candidates=replace(knowledge.candidates, masked=shorter))
    assert len(set(ErrorZone().scores(released, masking))) == 1


def test_members_are_found_without_protection_and_not_on_noise():
    settings = {"tune": "full", "epochs": 5, "learning_rate": 5e-3}
    _, leak = audited(NoDefense(), numbered(0), ErrorZone(), **settings)
    assert leak.success.low > 0.6
    assert advantage_low(leak) >= NEEDED
    _, leak = audited(Blackout(), numbered(0), ErrorZone(), **settings)
    assert leak.success.low <= 0.5


def test_a_classifier_has_no_tokens_to_read():
    with pytest.raises(Silent, match="classifier"):
        ErrorZone().scores(None, Knowledge(2, "cpu"))
