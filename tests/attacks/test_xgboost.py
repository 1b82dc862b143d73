"""Labels by boosted trees."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from label_attacks import looks_of, planted, sent, success

from leakboard.attacks.norm import Norm
from leakboard.attacks.xgboost import XGBoost
from leakboard.bench.attacking.label_leakage import evenly_spaced
from leakboard.bench.contracts.errors import MissingExtra
from leakboard.bench.contracts.transcript import Transcript


def test_boosted_trees_look_at_few_moments_and_the_others_at_all():
    x, y = planted("place", n=40)
    seen = Transcript(tuple(sent(x, moment, step=moment) for moment in range(9)))
    assert len(looks_of(Norm(), seen, y)) == 9
    assert [k.guess.moment for k in looks_of(XGBoost(), seen, y)] == [0, 4, 8]
    assert evenly_spaced([3, 5], 5) == [3, 5]
    assert evenly_spaced([], 3) == []


def test_one_half_of_the_labels_is_told_and_the_other_guessed(monkeypatch):
    told = []

    def learn(self, x, y, unknown, rng):
        told.append((len(x), len(unknown)))
        return np.zeros(len(unknown), np.int64)

    monkeypatch.setattr(XGBoost, "learn", learn)
    x, y = planted("place", n=40)
    looks_of(XGBoost(), Transcript((sent(x),)), y)
    assert told == [(20, 20), (20, 20)]


def test_trees_read_what_lies_along_any_of_many_components():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    x = rng.standard_normal((200, 40)) * np.linspace(3, 1, 40)
    x[:, 20] = 2 * (2 * y - 1) + rng.standard_normal(200) / 4
    assert success(XGBoost(), Transcript((sent(x),)), y).low > 0.7


def test_missing_xgboost_is_told_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    x, y = planted("place", n=20)
    with pytest.raises(MissingExtra, match=r"XGBoost.*pip install 'leakboard\[cpu\]'"):
        looks_of(XGBoost(), Transcript((sent(x),)), y)
