"""The seeds that open claims, costs and leakages need."""

from math import sqrt

import pytest
from records import leak, record

from leakboard.bench.contracts import LeakboardError
from leakboard.leaderboards.findings.planning import power_table
from leakboard.leaderboards.findings.power import power
from leakboard.leaderboards.tables import claim_verdicts, results_table
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
def table(monkeypatch):
    records = [
        *cells("none", {}, (0, 0, 0), undefended=True),
        *cells("sap", {"eta": 75.0}, QUIET),
        *cells("sap", {"eta": 50.0}, NOISY),
        *(record("untuned", {}, seed, 0.5, []) for seed in range(3)),
    ]
    claims = [PrintedClaim.model_validate(CLAIM)]
    monkeypatch.setattr("leakboard.leaderboards.findings.planning.printed_claims", lambda: claims)
    table = results_table(records)
    return table, claim_verdicts(table, claims)


def rows(text):
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]


def test_the_spread_is_pooled_over_pairs_so_that_luck_in_one_does_not_plan(table):
    text = power_table("claims", *table)
    assert text.startswith("0 of 1 claims are decided (0 replicated, 0 contradicted).")
    (row,) = rows(text)
    spread = sqrt((0.1**2 + 3**2) / 2)
    assert (row["claim"], row["pairs"], row["matters"]) == ("sap-is-free", "2", "1 point")
    assert float(row["sd"]) == pytest.approx(spread, abs=0.01)
    needed = int(row["needed"])
    assert power(spread, 1.0, needed, tests=2) >= 0.8 > power(spread, 1.0, needed - 1, tests=2)
    assert int(row["cells"]) == 2 * (needed - 3)


def test_costs_and_leakages_are_summed_up_by_task(table):
    cost = next(row for row in rows(power_table("board", *table)) if row["measure"] == "cost")
    assert (cost["task"], cost["settings"], cost["power ≥ 0.5"]) == ("reviews", "2", "1 of 2")


def test_another_block_is_refused(table):
    with pytest.raises(LeakboardError, match="expected 'claims' or 'board'"):
        power_table("all", *table)
