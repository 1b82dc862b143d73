"""Colours and names of methods."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from few_methods import BY, FEW

from leakboard.bench.methods import registry
from leakboard.leaderboards.tables import styles

pytestmark = pytest.mark.usefixtures("few_methods")


def test_a_new_method_shifts_no_look(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [styles.look(name) for name in ("sap", "mine")]
    more = {
        "aaa": SimpleNamespace(
            colour="#111111", marker="x", knob="k", measured_by={}, measured_on=(), formerly=()
        ),
        **FEW,
    }
    monkeypatch.setattr(registry, "defenses", lambda: more)
    assert [styles.look(name) for name in ("sap", "mine")] == before
    assert before[0] == styles.Look("#0072b2", "o", "eta", BY, ())
    assert before[1].colour in styles.PALETTE
