"""`leakboard plan --power`, and the lines on power before a run."""

import json

import pytest
import yaml
from records import leak, record

from leakboard.bench.records import Store
from leakboard.bench.running import make_plan
from leakboard.bench.suites import load_suite

SUITE = {
    "name": "mine",
    "task": "reviews",
    "model": "tiny-bert",
    "limit": 16,
    "seeds": [0, 1, 2],
    "train": {"epochs": 1, "batch_size": 8},
    "defenses": ["none", {"sap": {"eta": ["none", 75]}}],
    "attacks": ["eia-nn"],
}
NOISE = (0.02, -0.03, 0.01)


@pytest.fixture(scope="module")
def pilot(tmp_path_factory):
    """The suite's file, and a folder of records of its cells with seeds 0 to 2."""
    folder = tmp_path_factory.mktemp("pilot")
    (folder / "mine.yaml").write_text(yaml.safe_dump(SUITE))
    store = Store(folder / "records")
    for planned in make_plan(load_suite(SUITE)).cells:
        cell, hidden = planned.cell, planned.cell.defense.params.get("eta") is not None
        utility = (
            0.5 if cell.defense.name == "untuned" else 0.9 - hidden * (0.05 + NOISE[cell.seed])
        )
        leaks = [] if cell.defense.name == "untuned" else [leak(0.5 if hidden else 0.9)]
        made = record(cell.defense.name, {}, cell.seed, utility, leaks, undefended=not hidden)
        store.write(made.model_copy(update={"cell": cell, "key": cell.key}))
    return folder


def test_the_table_shows_what_seeds_exclude_and_what_they_would_need(leakboard, pilot, tmp_path):
    asked = ("plan", pilot / "mine.yaml", "--power", "--pilot", pilot / "records")
    code, out, _ = leakboard(*asked, "--out", tmp_path / "none")
    told = " ".join(out.split())
    assert code == 0
    assert "Power of mine with 3 seeds" in told
    assert "cost: SAP, η = 75, reviews" in told
    assert "power: 3 seeds are too few for 1 of 1 costs" in told
    code, out, _ = leakboard(*asked, "--out", tmp_path / "none", "--format", "json")
    cost = next(
        one for one in json.loads(out)["comparisons"] if one["comparison"].startswith("cost")
    )
    assert (cost["pilot_seeds"], cost["matters"], cost["unit"]) == (3, 1.0, "points")
    assert cost["power"] < 0.5
    assert cost["needed"] > 3
    assert cost["excluded"]["3"] > cost["excluded"]["5"] > cost["excluded"]["10"]
    assert cost["hours"] > 0


def test_plan_and_run_say_before_they_start_what_the_seeds_cannot_decide(leakboard, pilot):
    line = "power: 2 seeds are too few for 1 of 1 costs, where 1 point matters (power below 0.5)"
    asked = (pilot / "mine.yaml", "--out", pilot / "records", "--seeds", "3,4")
    code, out, _ = leakboard("plan", *asked)
    assert (code, line in " ".join(out.split())) == (0, True)
    _, out, _ = leakboard("run", *asked)
    assert line in " ".join(out.split())
    _, out, _ = leakboard("plan", pilot / "mine.yaml", "--out", pilot / "records", "--limit", "15")
    assert "power:" not in out  # other cells


def test_without_two_seeds_of_the_plan_there_is_a_sentence_and_no_number(
    leakboard, pilot, tmp_path
):
    code, _, err = leakboard("plan", pilot / "mine.yaml", "--power", "--out", tmp_path / "none")
    assert code == 2
    assert "no earlier records have two settings of this plan with two or more seeds" in " ".join(
        err.split()
    )
