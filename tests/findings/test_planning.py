"""The seeds that open claims, costs and leakages need."""

from math import sqrt

import pytest
from records import leak, record

from leakboard.bench.contracts import LeakboardError
from leakboard.leaderboards.findings.documents import Writers, hours_table, tuning_table
from leakboard.leaderboards.findings.power import board_power, claims_power, power
from leakboard.leaderboards.tables import RecordSet, claim_verdicts, results_table
from leakboard.leaderboards.tables.claims import PrintedClaim

CLAIM = {
    "id": "sap-is-free",
    "paper": "SAP",
    "where": "Section 5",
    "claim": "SAP costs nothing.",
    "metric": "utility",
    "task": ["reviews"],
    "a": {"defense": "sap"},
    "b": {"defense": "none"},
    "expect": "less",
}
QUIET, NOISY = (0.000, 0.001, -0.001), (0.03, -0.03, 0.0)


def cells(defense, params, shifts, **fields):
    return [
        record(defense, params, s, 0.9 + shift, [leak(0.9)], **fields)
        for s, shift in enumerate(shifts)
    ]


@pytest.fixture
def table():
    records = [
        *cells("none", {}, (0, 0, 0), undefended=True),
        *cells("sap", {"eta": 75.0}, QUIET),
        *cells("sap", {"eta": 50.0}, NOISY),
        *(record("untuned", {}, seed, 0.5, []) for seed in range(3)),
    ]
    claims = [PrintedClaim.model_validate(CLAIM)]
    table = results_table(records)
    return table, claim_verdicts(table, claims)


def rows(text):
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]


def test_the_spread_is_pooled_over_pairs_so_that_luck_in_one_does_not_plan(table):
    text = claims_power(*table)
    assert text.startswith("0 of 1 claims are decided (0 replicated, 0 contradicted).")
    (row,) = rows(text)
    spread = sqrt((0.1**2 + 3**2) / 2)
    assert (row["claim"], row["pairs"], row["matters"]) == ("sap-is-free", "2", "1 point")
    assert float(row["sd"]) == pytest.approx(spread, abs=0.01)
    needed = int(row["needed"])
    assert power(spread, 1.0, needed, tests=2) >= 0.8 > power(spread, 1.0, needed - 1, tests=2)
    assert int(row["cells"]) == 2 * (needed - 3)


def obstacle(success, **fields):
    """The last columns of a claim about SAP and SAP-CTI, whose success differs little from seed to seed."""
    claim = CLAIM | {"b": {"defense": "sap-cti"}, "metric": "success", "goal": "inversion"} | fields
    claims = [PrintedClaim.model_validate(claim)]
    records = [
        record(defense, {"eta": 75.0}, seed, 0.8, [leak(value + seed * shift)])
        for defense, value, shift in success
        for seed in range(3)
    ]
    table = results_table(records)
    (row,) = rows(claims_power(table, claim_verdicts(table, claims)))
    assert row["verdict"] == "undecided"
    return row["cells"], row["hours"]


def test_a_claim_whose_seeds_suffice_names_what_keeps_it_open():
    """More cells would not decide where no attack reads anything, or where the difference is as large as the margin."""
    blind = ("sap", 0.06, 0.0), ("sap-cti", 0.06, 0.0)
    assert obstacle(blind) == ("–", "no attack works")
    close = ("sap", 0.80, 0.0), ("sap-cti", 0.789, 0.001)
    found = obstacle(close, expect="equal", margin=0.01)
    assert found == ("–", "at the margin")


def test_costs_and_leakages_are_summed_up_by_task(table):
    cost = next(row for row in rows(board_power(table[0])) if row["measure"] == "cost")
    assert (cost["task"], cost["settings"], cost["power ≥ 0.5"]) == ("reviews", "2", "1 of 2")


@pytest.fixture
def folders(tmp_path):
    """Two folders, one with a row that was tuned, beside its trials."""
    tuned = record("sap", {"eta": 75.0}, 1)
    trials = {"trials": ["0" * 16, "1" * 16]}
    tuned = tuned.model_copy(update={"provenance": tuned.provenance.model_copy(update=trials)})
    parts = {
        "plain": [record("none", {}, 0, undefended=True), record("sap", {"eta": 50.0}, 0)],
        "tuned": [record("none", {}, 1, epochs=3, undefended=True), tuned],
        "tuned-trials": [record("sap", {"eta": 75.0}, 2, epochs=4), record("untuned", {}, 2)],
    }
    for name, own in parts.items():
        (tmp_path / name).mkdir()
        for one in own:
            (tmp_path / name / f"{one.key}.json").touch()
    every = [one for own in parts.values() for one in own]
    return RecordSet.of(every, folders=[tmp_path / name for name in parts])


def test_settings_are_counted_by_their_trials_and_trials_are_no_settings(folders):
    text = tuning_table(folders)
    assert text.startswith(
        "1 of 4 settings were tuned, in the folders below. In 1 other folder, no setting was tuned."
    )
    assert [tuple(row.values()) for row in rows(text)] == [
        ("tuned", "0", "1", "No protection"),
        ("tuned", "2", "1", "SAP"),
    ]


def test_hours_are_those_of_the_cells_of_each_folder(folders):
    text = hours_table(folders)
    seconds = folders.records[0].cost.total_seconds
    assert text.startswith(f"6 cells took {6 * seconds / 3600:.0f} hours of one process.")
    assert [(row["folder"], row["cells"], row["seeds"]) for row in rows(text)] == [
        ("plain", "2", "1"),
        ("tuned", "2", "1"),
        ("tuned-trials", "2", "1"),
    ]


def test_another_block_is_refused(folders):
    writers = Writers(folders)
    with pytest.raises(LeakboardError, match="expected 'claims' or 'board'"):
        writers["power"]("all")
    with pytest.raises(LeakboardError, match="expected 'tuning' or 'hours'"):
        writers["records"]("all")
