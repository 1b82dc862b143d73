"""What each defense leaks of every goal, and what it costs."""

from __future__ import annotations

import pytest
from experiments import compared
from records import record

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.leaderboards.figures.drawing import Request, plots
from leakboard.leaderboards.figures.kinds.goals import goals
from leakboard.leaderboards.tables.record_set import RecordSet
from leakboard.leaderboards.tables.results import results_table


def test_each_defense_stands_at_the_setting_of_its_ranking_with_all_that_it_leaks():
    found = goals(results_table(compared(labels=0.95)))
    plot = found["sst2", "minilm"]
    cost, inputs, labels = plot.panels
    assert [one.title for one in plot.panels] == ["cost", "inputs", "labels"]
    assert cost.y.ticks == [(0.0, "SAP, η = 110")]  # of those within the budget
    assert cost.series[0].points[0].x.value == pytest.approx(1.0)
    assert inputs.series[0].points[0].x.value == pytest.approx(0.91, abs=0.01)
    assert labels.series[0].points[0].x.value == pytest.approx(1.0)
    assert inputs.y.shared  # files write the names once in each row


def test_where_no_setting_is_within_the_budget_the_cheapest_is_drawn():
    (plot,) = goals(results_table(compared({75.0: (0.5, 0.8), 50.0: (0.2, 0.7)}))).values()
    assert plot.panels[0].y.ticks == [(0.0, "SAP, η = 75")]


def test_a_goal_without_a_certified_attack_has_no_panel():
    (plot,) = goals(results_table(compared(labels=0.5))).values()
    assert [one.title for one in plot.panels] == ["cost", "inputs"]


def test_tasks_have_figures_of_their_own():
    found = RecordSet.of(compared() + compared(task="mrpc"), "m")
    assert set(plots(found, Request("goals"))) == {"m-goals-sst2-minilm", "m-goals-mrpc-minilm"}


def test_nothing_to_compare_is_an_error():
    with pytest.raises(LeakboardError, match="nothing to plot: no defense"):
        goals(results_table([record()]))
