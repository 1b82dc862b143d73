"""Defenses that send tokens."""

from __future__ import annotations

import pytest
from cells import DEEP, leak_of, run

from defenses.frozen import Frozen
from defenses.none import NoDefense


@pytest.mark.parametrize("defense", [NoDefense(), Frozen()])
def test_defenses_that_send_tokens_do_not_depend_on_the_cut(tmp_path, defense):
    records = run(tmp_path, defense, **DEEP | {"cut": (0, 1)})
    kept = [r.outcome() for r in records]
    for outcome in kept:
        del outcome["key"], outcome["cell"], outcome["leaks"]
    assert kept[0] == kept[1]
    for record in records:
        assert leak_of(record, "eia-nn").success.value == 1
        assert record.cost.bottom is None
