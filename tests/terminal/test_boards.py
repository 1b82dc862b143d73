"""Leaderboards on a terminal."""

from __future__ import annotations

from io import StringIO

import pytest
from experiments import compared
from rich.console import Console

import leakboard as lb
from leakboard.leaderboards.tables.choices import choose
from leakboard.leaderboards.tables.rankings import rankings
from leakboard.leaderboards.tables.results import results_table
from leakboard.leaderboards.terminal import board_table, papers_tables, printable


def printed(parts, width: int = 80) -> str:
    console = Console(width=width, file=StringIO())
    for part in printable(parts):
        console.print(part)
    return console.file.getvalue()


@pytest.fixture(scope="module")
def published():
    return [board_table(one) for one in rankings(lb.published("matrix").table)]


@pytest.mark.parametrize("width", [80, 120])
def test_boards_fit_the_terminal_and_no_interval_is_torn(published, width):
    text = printed(published, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for table in published:
        for row in table.rows:
            assert isinstance(row, str) or table.cells(row)[2].text in text


def test_a_board_has_ranks_then_what_costs_more_then_the_baselines():
    (one,) = rankings(results_table(compared(labels=0.95)))
    lines = printed([board_table(one)], 140).splitlines()
    assert lines[0].startswith("inputs of sst2 · minilm · ")
    assert lines[0].endswith("at most 3 points")
    (row,) = (line for line in lines if "SAP, η = 110" in line)
    assert row.split()[0] == "1"
    assert "91 % [90, 91]" in row
    assert "1.0" in row
    assert "labels 100 %" in row
    assert lines.index("baselines") > lines.index(row)
    (one,) = rankings(results_table(compared({75.0: (0.5, 0.8)})))
    text = printed([board_table(one)])
    assert "no setting that costs at most 3 points clearly reduces leakage" in text
    assert "costs more than 3 points, or nearly all gain, at every measured setting" in text


@pytest.mark.parametrize(
    ("metric", "unit"), [("Spearman", "hundredths of Spearman"), ("micro-F1", "points")]
)
def test_points_are_of_percentages_and_other_utilities_have_their_own_unit(metric, unit):
    records = [one.model_copy(update={"utility_metric": metric}) for one in compared()]
    table = results_table(records)
    (one,) = rankings(table)
    shown = board_table(one)
    assert shown.title.endswith(f"at most 3 {unit}")
    assert f"{unit} lost" in [column.label for column in shown.columns]
    said = choose(table, "sst2", "inputs", 3).why
    assert f"at most 3 {unit}: SAP" in said
    assert said.endswith(f", for 1.0 of the 40.2 {unit} gained.")
    assert ("points" in said) == (unit == "points")


def test_what_has_no_rank_stands_below_with_its_reason():
    (one,) = rankings(results_table(compared(twin=0.1)))
    text = " ".join(printed([board_table(one)]).split())
    assert (
        "Not certified: SAP; even without the defense, no attack has an advantage clearly above 0.2"
        in text
    )
    (one,) = rankings(results_table(compared({10.0: (0.1, 0.49)})))
    text = " ".join(printed([board_table(one)]).split())
    assert "No rank: SAP; its utility is not clearly above the untuned model's." in text


def test_the_papers_numbers_stand_with_ours():
    found = lb.published("sap-table3")
    text = printed(papers_tables(found), 120)
    assert "SAP, Table 3, roberta-large, and our measurements" in text
    assert "measured on minilm, 3 seeds, at most 1,000 examples (sap-table3)" in text
    assert list(papers_tables(lb.published("matrix"))) == []
