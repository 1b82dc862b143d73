"""Comparisons, corrections, and what a curve is summarised by."""

from math import nan

import pytest
from records import estimate, leak, record

from leakboard.bench.contracts import LeakboardError
from leakboard.leaderboards.tables.choices import choose
from leakboard.leaderboards.tables.compare import Difference, compare, holm
from leakboard.leaderboards.tables.curves import curves
from leakboard.leaderboards.tables.intervals import MISSING, Interval
from leakboard.leaderboards.tables.results import results_table

LEAKS = {110: 0.9, 90: 0.7, 75: 0.45, 60: 0.25}
UTILITIES = {110: 0.885, 90: 0.86, 75: 0.8, 60: 0.7}


def sweep(
    task="sst2", seeds=3, defense="sap", shift=0.0, utilities=UTILITIES, model="minilm", **fields
):
    """SAP over four η with no protection, its twin and the untuned model; seeds differ a little."""
    cells, at = [], {"task": task, "model": model}
    for seed in range(seeds):
        d = seed / 1000
        cells += [
            record("none", {}, seed, 0.9 + d, leaks=[leak(1.0)], undefended=True, **at),
            record(defense, {"eta": None}, seed, 0.9, leaks=[leak(1.0)], undefended=True, **at),
            record("untuned", {}, seed, 0.5, leaks=[], **at),
        ]
        cells += [
            record(
                defense,
                {"eta": float(eta)},
                seed,
                utilities[eta],
                leaks=[leak(LEAKS[eta] + shift + d)],
                **at,
            )
            for eta in LEAKS
        ]
    return [c.model_copy(update=fields) for c in cells]


def at(table, eta, defense="sap"):
    return next(r for r in table if r.defense == defense and r.setting.knob_value == eta)


def the_curve(records):
    return next(c for c in curves(results_table(records)) if c.defense == "sap")


def test_a_difference_is_paired_by_the_seed():
    table = results_table(sweep())
    found = compare(at(table, 75), at(table, 90), "leakage")
    assert found.verdict == "less"
    assert found.seeds == 3
    # The seeds move both alike, so that pairing leaves hardly an interval.
    assert found.mean.high - found.mean.low < 1e-6
    assert compare(at(table, 90), at(table, 75), "leakage").verdict == "more"


def test_utilities_differ_in_points_and_costs_the_other_way():
    table = results_table(sweep())
    assert compare(at(table, 75), at(table, 90), "utility").mean.value == pytest.approx(-6)
    assert compare(at(table, 75), at(table, 90), "cost").mean.value == pytest.approx(6)


def test_rows_tuned_by_other_trials_are_not_compared():
    cells = sweep()
    for i, one in enumerate(cells):
        if one.cell.defense.params == {"eta": 75.0}:
            given = one.provenance.model_copy(update={"trials": ("a",)})
            cells[i] = one.model_copy(update={"provenance": given})
    table = results_table(cells)
    found = compare(at(table, 75), at(table, 90), "cost")
    assert found.verdict == "undecided"
    assert "not tuned alike" in found.reason
    assert compare(at(table, 75), at(table, 90), "leakage").verdict == "less"


def test_leakages_are_not_compared_if_the_strongest_attack_met_one_row_alone():
    cells = sweep()
    for i, one in enumerate(cells):
        reads = 1.0 if one.undefended else LEAKS[75] + 0.1
        if one.undefended or one.cell.defense.params == {"eta": 75.0}:
            both = [*one.leaks, leak(reads, "eia-map")]
            cells[i] = one.model_copy(update={"leaks": both})
    table = results_table(cells)
    for pair in ((75, 90), (90, 75)):
        found = compare(*(at(table, eta) for eta in pair), "leakage")
        assert found.verdict == "undecided"
        assert "leaks most to eia-map, which was not run on SAP, η = 90" in found.reason
    assert compare(at(table, 75), at(table, 90), "cost").verdict == "more"


@pytest.mark.parametrize(("reads", "verdict"), [(0.9, "undecided"), (1.0, "less")])
def test_other_parameters_make_another_attack_unless_the_row_leaks_everything(reads, verdict):
    cells = sweep()
    for i, one in enumerate(cells):
        is_mild = one.cell.defense.params == {"eta": 90.0}
        params = {"sentences": 100 if is_mild else 6000}
        success = 1.0 if one.undefended else 0.6
        own = [leak(reads)] if is_mild else one.leaks
        cells[i] = one.model_copy(update={"leaks": [*own, leak(success, "eia-map", params=params)]})
    table = results_table(cells)
    assert compare(at(table, 75), at(table, 90), "leakage").verdict == verdict


def test_rows_on_different_data_are_not_compared_in_utility():
    here, there = (results_table(sweep(task)) for task in ("sst2", "reviews"))
    assert "different data" in compare(at(here, 75), at(there, 75), "utility").reason


def test_seeds_that_are_not_shared_leave_nothing_to_compare():
    first = results_table(sweep(seeds=1))
    moved = [
        c.model_copy(update={"cell": c.cell.model_copy(update={"seed": 7})}) for c in sweep(seeds=1)
    ]
    found = compare(at(first, 75), at(results_table(moved), 75), "leakage")
    assert (found.seeds, found.verdict) == (0, "undecided")


def test_one_seed_is_compared_by_the_intervals_inside_the_cells():
    table = results_table(sweep(seeds=1))
    found = compare(at(table, 75), at(table, 90), "success")
    assert found.verdict == "less"
    assert found.mean.low < -0.25 < found.mean.high


def test_rows_with_other_seeds_are_read_on_the_common_ones():
    """The attack that is stronger on seven seeds is not the one that two seeds choose."""

    def cells(seeds, params):
        attacks = {"eia-nn": lambda s: 0.7 if s < 2 else 0.3, "eia-bayes": lambda s: 0.6}
        leaks = {s: [leak(read(s), name) for name, read in attacks.items()] for s in seeds}
        return [record("sap", params, s, 0.9, leaks=leaks[s]) for s in seeds]

    off = [record("sap", {"eta": None}, s, leaks=[leak(1.0)], undefended=True) for s in range(7)]
    few, many = (
        results_table([*cells(range(2), {"eta": 75.0}), *cells(seeds, {"eta": 90.0}), *off])
        for seeds in (range(2), range(7))
    )
    assert at(many, 90).success_by_seed[0] == 0.6
    for metric in ("leakage", "success"):
        found = compare(at(many, 75), at(many, 90), metric)
        assert found.mean.value == pytest.approx(0.0)
        assert (found.seeds, found.b.success.value) == (2, pytest.approx(0.7))
        assert found.mean == compare(at(few, 75), at(few, 90), metric).mean


def test_a_curve_is_summarised_on_the_seeds_that_its_settings_share():
    """Further seeds of one setting, which choose another attack for the first ones, change no summary."""

    def with_second_attack(one):
        if one.cell.defense.params != {"eta": 110.0}:
            return one
        first = one.cell.seed < 3
        leaks = [one.leaks[0] if first else leak(0.01), leak(0.3 if first else 0.8, "eia-bayes")]
        return one.model_copy(update={"leaks": leaks})

    cells = [with_second_attack(one) for one in sweep(seeds=6)]
    few = [one for one in cells if one.cell.seed < 3]
    baselines = [one for one in cells if one.undefended or not one.leaks]
    more = [one for one in cells if one.cell.defense.params == {"eta": 110.0}]
    few, many = (
        the_curve(few),
        the_curve({one.key: one for one in [*few, *baselines, *more]}.values()),
    )
    assert few.leakage_within(3).value == many.leakage_within(3).value
    assert few.leakage_within(3).setting.leakage.value > 0.8
    assert many.leakage_within(3).setting.leakage.value < 0.7
    assert few.cost_of_halving().value == many.cost_of_halving().value


def difference(p):
    return Difference(None, None, "leakage", MISSING, p, 3, p < 0.05)


def test_holm_corrects_for_the_size_of_the_family():
    family = [difference(p) for p in (0.04, 0.001, 0.02, nan)]
    assert [one.is_clear for one in family] == [True, True, True, False]
    # 0.001 · 3 and 0.02 · 2 are below 5 %, 0.04 · 1 too; with one more test 0.02 · 3 is not.
    assert [one.is_clear for one in holm(family)] == [True, True, True, False]
    more = holm([*family, difference(0.5)])
    assert [one.is_clear for one in more] == [False, True, False, False, False]


def test_a_size_outside_the_interval_is_excluded():
    one = Difference(None, None, "utility", Interval(0.4, -2.6, 3.4), 0.5, 3, False)
    assert one.excludes(3.5)
    assert not one.excludes(2.5)


def test_leakage_within_a_budget_is_that_of_a_measured_setting():
    curve = the_curve(sweep())
    found = curve.leakage_within(5.0)
    assert found.setting.setting.knob_value == 90
    assert found.value.value == pytest.approx(found.setting.leakage.value)
    assert curve.leakage_within(3.0).setting.setting.knob_value == 110
    assert curve.leakage_within(0.5).setting is None


def test_the_cost_of_halving_is_that_of_a_measured_setting_or_never():
    curve = the_curve(sweep())
    found = curve.cost_of_halving()
    assert found.setting.setting.knob_value == 75
    assert found.value.value == pytest.approx(10.1)
    assert the_curve(sweep(shift=0.5)).cost_of_halving().setting is None


def test_the_setting_is_chosen_on_the_other_seeds():
    """A setting that meets the budget on one seed by luck is not reported there."""
    cells = sweep()
    for i, one in enumerate(cells):
        if one.cell.defense.params == {"eta": 60.0} and one.cell.seed == 0:
            lucky = one.utility.model_copy(update={"value": 0.89})
            cells[i] = one.model_copy(update={"utility": lucky})
    assert the_curve(cells).leakage_within(3.0).setting.setting.knob_value == 110


def test_a_setting_that_learnt_nothing_is_never_recommended():
    useless = dict.fromkeys(UTILITIES, 0.5)
    cells = sweep(utilities=useless)
    assert the_curve(cells).priced == []
    choice = choose(results_table(cells), "sst2", "inputs", 50)
    assert not choice
    assert "not clearly above the untuned model" in choice.why


def test_choose_takes_the_least_leakage_within_the_budget():
    choice = choose(results_table(sweep()), "sst2", "inputs", 5)
    assert choice.setting.setting.knob_value == 90
    assert choice.why.startswith("Inputs of sst2, at most 5 points: SAP, η = 90 leaks 69 %")


def test_choose_names_the_cheapest_where_the_budget_affords_nothing():
    choice = choose(results_table(sweep()), "sst2", "inputs", 1)
    assert not choice
    assert choice.nearest.setting.knob_value == 110


def test_choose_names_the_model_where_several_were_measured():
    table = results_table(sweep() + sweep(utilities=UTILITIES | {90: 0.8}, model="mpnet"))
    assert choose(table, "sst2", "inputs", 5).why.startswith("Inputs of sst2 with minilm, at most")
    assert choose(table, "sst2", "inputs", 5, "mpnet").why.startswith("Inputs of sst2, at most")


def test_where_tuning_gains_less_than_the_budget_no_setting_is_recommended():
    gained = {
        0.6: "",
        0.88: "gain more than 3 points here: 2.1 [1.9, 2.3]",
        0.872: "here: 2.9 [2.7, 3.1]",
    }
    for untuned, why in gained.items():
        cells = [
            c.model_copy(update={"utility": estimate(untuned)})
            if c.cell.defense.name == "untuned"
            else c
            for c in sweep()
        ]
        choice = choose(results_table(cells), "sst2", "inputs", 5)
        assert bool(choice) == (not why)
        assert why in choice.why


def test_choose_counts_only_defenses_made_for_the_goal():
    from leakboard.bench.contracts import Channel, Goal

    reads = {
        "attack": "spectral",
        "goal": Goal.LABEL,
        "channel": Channel.ACTIVATIONS,
        "chance": 0.5,
    }
    cells = [
        c.model_copy(
            update={"leaks": [leak(0.5 + one.success.value / 2, **reads) for one in c.leaks]}
        )
        for c in sweep()
    ]
    choice = choose(results_table(cells), "sst2", "labels", 5)
    assert not choice
    assert "no defense made for labels was measured" in choice.why


@pytest.mark.parametrize("budget", [-1, 101, "3", True, None])
def test_a_budget_is_a_number_of_points(budget):
    with pytest.raises(LeakboardError, match="points of utility from 0 to 100"):
        choose(results_table(sweep()), "sst2", "inputs", budget)


def test_an_unknown_task_names_the_nearest():
    with pytest.raises(LeakboardError, match="sst2"):
        choose(results_table(sweep()), "sst", "inputs")


def test_of_several_comparisons_the_leakage_counts_where_most_leaks():
    """The same setting attacked by more elsewhere: its cost stands here, its leakage there."""
    stronger = [
        record("sap", {"eta": 75.0}, s, 0.8, leaks=[leak(0.6, "eia-map")], task="sst2", limit=500)
        for s in range(3)
    ] + [
        record(
            "sap", {"eta": None}, s, 0.9, leaks=[leak(1.0)], undefended=True, task="sst2", limit=500
        )
        for s in range(3)
    ]
    curve = the_curve([*sweep(), *stronger])
    row = next(r for r in curve.results if r.setting.knob_value == 75)
    assert row.attack == "eia-map"
    assert row.cost.value == pytest.approx(10.1)
