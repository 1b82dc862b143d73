"""Which setting is chosen: the cheapest that leaks least, of those that learned, whatever the order of the records."""

from __future__ import annotations

import pytest
from records import leak, record

from leakboard.bench.contracts import LeakboardError
from leakboard.leaderboards.tables.choices import choose
from leakboard.leaderboards.tables.compare import compare
from leakboard.leaderboards.tables.curves import curves
from leakboard.leaderboards.tables.rankings import rankings
from leakboard.leaderboards.tables.results import results_table


def measured(settings, untuned=0.5, task="sst2", defense="sap", **fields):
    """A defense at some settings, each with (parameters, utility, token accuracy), with what it is compared to."""
    cells = []
    for seed in range(3):
        add = seed / 1000
        off = {"task": task, "undefended": True, **fields}
        cells += [
            record("none", {}, seed, 0.9 + add, [leak(1.0)], **off),
            record(defense, {"eta": None}, seed, 0.9, [leak(1.0)], **off),
            record("untuned", {}, seed, untuned, [], task=task, **fields),
        ]
        cells += [
            record(defense, params, seed, utility + add, [leak(read + add)], task=task, **fields)
            for params, utility, read in settings
        ]
    return cells


def test_of_settings_that_leak_alike_the_cheapest_is_chosen():
    table = results_table(
        measured([({"eta": 90.0}, 0.87, 0.700), ({"eta": 100.0}, 0.89, 0.704)])
        + measured([({"eta": 90.0}, 0.88, 0.8)], defense="rapt")
    )
    choice = choose(table, "sst2", "inputs", 5)
    assert choice.setting.setting.knob_value == 100
    assert choice.leakage.value == pytest.approx((0.705 - 0.05) / 0.95)


def test_no_budget_buys_a_model_that_learned_nearly_nothing():
    table = results_table(measured([({"eta": 50.0}, 0.56, 0.1), ({"eta": 75.0}, 0.6, 0.3)]))
    assert choose(table, "sst2", "inputs", 50).setting.setting.knob_value == 75
    nearly = results_table(measured([({"eta": 50.0}, 0.56, 0.1)]))
    choice = choose(nearly, "sst2", "inputs", 50)
    assert choice.setting is None
    assert (
        "clearly reduces leakage and still learns. The cheapest that reduces it is SAP"
        in choice.why
    )
    assert "34.0 of the 40.1 points gained" in choice.why
    (one,) = rankings(nearly, 50)
    assert [entry.setting.setting.knob_value for entry in one.over] == [50]


def test_the_order_of_the_records_decides_nothing():
    more = [({"eta": 75.0}, 0.88, 0.5), ({"eta": 60.0}, 0.7, 0.2)]
    cells = [
        *measured(more),
        *measured(more, defense="rapt"),
        *measured(more, epochs=4),
        *measured(more, limit=500),
    ]
    forth, back = (results_table(some) for some in (cells, reversed(cells)))
    for budget in (3, 40):
        a, b = (choose(table, "sst2", "inputs", budget) for table in (forth, back))
        assert (a.why, a.setting.setting.keys) == (b.why, b.setting.setting.keys)
    keys = [{(row.setting.keys, row.twin_keys) for row in table} for table in (forth, back)]
    assert keys[0] == keys[1]


def test_the_circumstance_that_leaks_most_counts_with_its_own_cost():
    both = [
        ({"epsilon": 3.0, "canaries": "masked"}, 0.88, 0.1),
        ({"epsilon": 3.0, "canaries": "missed"}, 0.82, 0.9),
    ]
    (curve,) = (c for c in curves(results_table(measured(both, defense="jft"))) if c.certified)
    (row,) = curve.results
    assert "missed" in row.setting.params
    assert row.cost.value == pytest.approx(8, abs=0.2)
    assert row.leakage.value == pytest.approx(0.9, abs=0.02)


def test_a_weakly_attacked_measurement_displaces_no_other():
    strong = measured([({"eta": 75.0}, 0.88, 0.8)])
    weak = [
        one.model_copy(
            update={"leaks": [leak(0.05 + 0.3 * (x.success.value - 0.05)) for x in one.leaks]}
        )
        for one in measured([({"eta": 75.0}, 0.89, 1.0)], limit=500)
    ]
    (curve,) = curves(results_table([*strong, *weak]))
    (row,) = curve.priced
    assert row.setting.first.cell.limit == 2000


def test_an_unknown_model_names_the_nearest():
    table = results_table(measured([({"eta": 75.0}, 0.88, 0.8)]))
    with pytest.raises(
        LeakboardError, match=r"no records of 'MiniLM' on sst2. Did you mean 'minilm'"
    ):
        choose(table, "sst2", "inputs", model="MiniLM")


def test_leakages_of_different_questions_are_not_compared():
    two = [
        next(
            row
            for row in results_table(measured([({"eta": 75.0}, 0.88, 0.8)], task=task))
            if row.defense == "sap"
        )
        for task in ("sst2", "mrpc")
    ]
    assert "different questions" in compare(*two, "leakage").reason
    assert not compare(two[0], two[0], "leakage").reason
