"""The notebook, cell after cell, as a reader runs it."""

from __future__ import annotations

import ast
import json

import pytest
from paths import ROOT

NOTEBOOK = ROOT / "docs" / "first_look.ipynb"


def cells():
    return json.loads(NOTEBOOK.read_text("utf-8"))["cells"]


@pytest.fixture(scope="module")
def ran():
    """The names that it leaves behind, and what each cell shows: the value of its last line."""
    names, shown = {"__name__": "__main__"}, []
    for cell in cells():
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(NOTEBOOK), "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)
            shown.append(value)
    return names, shown


def test_it_is_a_notebook_without_outputs_that_would_grow_stale():
    told = json.loads(NOTEBOOK.read_text("utf-8"))
    assert told["nbformat"] == 4
    assert len({cell["id"] for cell in told["cells"]}) == len(told["cells"])
    code = [cell for cell in told["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


def test_it_shows_the_published_records_and_a_choice_with_evidence(ran):
    names, shown = ran
    assert str(shown[0]).startswith("data version ")
    assert {("none", "none"), ("sap", "η = 75")} <= {
        *zip(shown[1]["defense"], shown[1]["setting"], strict=True)
    }
    assert names["choice"]


def test_its_own_run_inverts_what_nothing_protects(ran):
    names, _ = ran
    rows = names["mine"].best()
    assert rows[rows["setting"] == "none"]["success"].iloc[0] > 0.9


def test_another_seed_is_what_changed(ran):
    names, _ = ran
    assert set(names["changes"].frame()["kind"]) == {"changed"}
    assert all("seeds: 0 → 0, 1" in one.why for one in names["changes"])


def test_its_report_is_written(ran):
    names, _ = ran
    assert "What your provider can read" in names["page"].read_text("utf-8")
