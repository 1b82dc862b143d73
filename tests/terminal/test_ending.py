"""What a run showed, in a few lines."""

from __future__ import annotations

from experiments import compared

from leakboard.leaderboards.tables.results import results_table
from leakboard.leaderboards.terminal import ending


def told(records):
    return ending(results_table(records))


def test_the_best_setting_within_the_budget_is_told_with_its_leakage_and_cost():
    (line,) = told(compared())
    assert line.startswith("Inputs of sst2, at most 3 points: SAP, η = 110 leaks 91 % [90, 91]")
    assert "for 1.0 points" in line


def test_where_all_is_dearer_the_cheapest_that_helps_is_told():
    (line,) = told(compared({75.0: (0.5, 0.8), 50.0: (0.2, 0.7)}))
    assert "no setting within the budget clearly reduces leakage" in line
    assert "The cheapest that does is SAP, η = 75: 48 % for 10.0 points" in line


def test_what_is_not_certified_is_not_praised():
    (line,) = told(compared(twin=0.1))
    assert line.startswith("Inputs of sst2, at most 3 points: not certified; ")


def test_a_setting_that_learnt_nothing_is_not_recommended():
    (line,) = told(compared({10.0: (0.1, 0.49)}))
    assert "no setting has a cost that may be compared" in line


def test_many_tasks_are_cut_short():
    lines = told([one for name in "abcdef" for one in compared(task=name)])
    assert len(lines) == 5
    assert lines[-1] == "and 2 more lines of this kind"
