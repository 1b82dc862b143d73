"""Utility against EP, with what a paper prints."""

from __future__ import annotations

from dataclasses import replace

import pytest
from experiments import compared
from records import record

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.leaderboards.figures.drawing import Request, plots
from leakboard.leaderboards.tables.record_set import RecordSet


def of_paper(records, run="sap-table3"):
    return replace(RecordSet.of(records, "mine"), run=run)


def test_ep_is_one_less_the_success_and_the_papers_points_are_hollow():
    (plot,) = plots(of_paper(compared()), Request("printed")).values()
    (panel,) = plot.panels
    mine, *theirs = panel.series
    assert (mine.name, mine.hollow) == ("SAP", False)
    assert [one.x.value for one in mine.points] == pytest.approx([0.798, 0.498, 0.098])
    assert [one.y.value for one in mine.points] == pytest.approx([0.702, 0.852, 0.892])
    assert {one.name for one in theirs} == {
        "SAP (frozen), as printed",
        "SAP (trainable), as printed",
    }
    assert all(one.hollow and one.line for one in theirs)
    assert [one.label for one in theirs[0].points][:2] == ["45", "50"]
    assert {one.label: one.value for one in panel.references} == pytest.approx(
        {"guessing": 0.95, "undefended": 0.902, "untuned model": 0.5}
    )
    assert plot.title == "Inputs: SAP, Table 3, and our measurements"
    assert "roberta-large" in plot.caption


def test_other_tasks_of_the_paper_are_not_drawn():
    (plot,) = plots(of_paper(compared(task="mine")), Request("printed")).values()
    assert [one.name for one in plot.panels[0].series] == ["SAP"]


@pytest.mark.parametrize("run", [None, "smoke"])
def test_records_of_no_paper_are_refused(run):
    with pytest.raises(LeakboardError, match="no suite that mirrors a paper"):
        plots(of_paper(compared(), run), Request("printed"))


def test_a_setting_without_utility_has_no_point():
    with pytest.raises(LeakboardError, match="no setting has both a utility"):
        plots(of_paper([record(utility=None)]), Request("printed"))
