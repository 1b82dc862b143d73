"""What a run showed, in a few lines."""

from __future__ import annotations

import pytest
from records import leak, record, sweep

from leakboard.leaderboards.tables import comparisons
from leakboard.leaderboards.terminal import ending

pytestmark = pytest.mark.usefixtures("certified")


def told(records):
    return ending(comparisons(records))


def test_the_best_setting_within_the_budget_is_told_with_its_attack_and_cost():
    (line,) = told(sweep())
    assert line == (
        "sst2: what hides inputs best for at most 5 points of utility is sap η=100: eia-nn reaches 0.910 "
        "[0.885, 0.935] instead of 0.990 (token accuracy; guessing 0.050), it costs 3.0 [0.5, 5.5]"
    )


def test_where_all_is_dearer_the_nearest_is_told_and_that_it_is_dear():
    dear = [r for r in sweep() if r.undefended or r.cell.defense.params["eta"] < 100]
    (line,) = told(dear)
    assert line.startswith(
        "sst2: what hides inputs at all, but not for at most 5 points of utility, is sap η=75: eia-nn"
    )


def test_what_helps_nowhere_is_not_praised():
    open_ = [leak(0.99)]
    found = [record("sap", {"eta": 50.0}, s, 0.9, open_) for s in range(3)]
    found += [record("none", {}, s, 0.92, open_, undefended=True) for s in range(3)]
    (line,) = told(found)
    assert line.startswith("reviews: nothing is shown to hide inputs: at no setting")


def test_many_tasks_are_cut_short():
    lines = told([r for name in "abcdef" for r in sweep(name)])
    assert len(lines) == 5
    assert lines[-1] == "and 2 more lines of this kind"
