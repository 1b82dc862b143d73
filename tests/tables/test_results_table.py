"""The results table: costs, and what stands for no protection."""

import pytest
from records import leak, record

from leakboard.bench.contracts import LeakboardError
from leakboard.leaderboards.tables.compare import compare
from leakboard.leaderboards.tables.goals import goal_of
from leakboard.leaderboards.tables.rankings import undefended_row
from leakboard.leaderboards.tables.results import results_table

OFF, ON = {"eta": None}, {"eta": 75.0}


def experiment(utility=0.8, plain=0.9, untuned=0.5, seeds=3, trials=()):
    """SAP, no protection and the untuned model; utilities differ a little by the seed."""
    cells = []
    for seed in range(seeds):
        cells += [
            record("none", {}, seed, plain + seed / 1000, undefended=True),
            record("sap", OFF, seed, plain, leaks=[leak(1.0)], undefended=True),
            record("sap", ON, seed, utility, leaks=[leak(0.5)]),
        ]
        cells += [] if untuned is None else [record("untuned", {}, seed, untuned, leaks=[])]
    return [
        one.model_copy(update={"provenance": one.provenance.model_copy(update={"trials": trials})})
        if one.cell.defense.name == "sap"
        else one
        for one in cells
    ]


def sap(cells):
    return next(r for r in results_table(cells) if r.defense == "sap" and not r.setting.undefended)


def test_cost_is_in_points_against_no_protection_by_the_seed():
    row = sap(experiment())
    assert row.cost.value == pytest.approx(10.1)
    assert row.cost_by_seed == {s: pytest.approx(10 + s / 10) for s in range(3)}


def test_a_setting_that_learnt_nothing_has_no_cost():
    row = sap(experiment(utility=0.5, untuned=0.5))
    assert row.cost.is_missing
    assert row.cost_reason == "its utility is not clearly above the untuned model's"


def test_utilities_of_models_that_learned_nearly_nothing_are_not_compared():
    """Two settings that learn nothing are equally useful, which says nothing of either."""
    noisy = [record("sap", {"eta": 50.0}, s, 0.5, leaks=[leak(0.5)]) for s in range(3)]

    def difference(utility):
        rows = results_table([*experiment(utility=utility), *noisy]).select(undefended=False)
        a, b = (row for row in rows if row.defense == "sap")
        return compare(a, b, "utility")

    reason = "neither still learns (keeps a fifth of what tuning gains)"
    assert difference(0.5).reason == difference(0.55).reason == reason
    assert not difference(0.8).reason


def test_without_the_untuned_model_there_is_no_cost():
    row = sap(experiment(untuned=None))
    assert row.cost.is_missing
    assert row.cost_reason == "the untuned model was not measured beside it"


def test_a_row_tuned_by_other_trials_is_marked():
    assert sap(experiment()).is_equally_tuned
    row = sap(experiment(trials=("a", "b")))
    assert not row.is_equally_tuned
    assert row.setting.trials == 2


def test_beside_a_tuned_experiment_on_the_same_task_an_untuned_one_has_no_comparable_cost():
    tuned = [
        one.model_copy(
            update={
                "cell": one.cell.model_copy(update={"limit": 4000}),
                "provenance": one.provenance.model_copy(update={"trials": ("a", "b")}),
            }
        )
        for one in experiment()
    ]
    rows = {
        row.setting.trials: row
        for row in results_table([*experiment(), *tuned])
        if row.defense == "sap" and not row.setting.undefended
    }
    assert {trials: row.has_comparable_cost for trials, row in rows.items()} == {0: False, 2: True}
    assert "less than others" in rows[0].reason_without_cost
    assert sap(experiment()).has_comparable_cost


def test_every_column_is_filled_or_missing_for_a_reason():
    table = results_table(experiment()).frame()
    assert not table["cost_reason"][table["cost"].notna()].any()
    assert table["cost_reason"][table["cost"].isna()].all()


def test_no_protection_stands_for_no_protection_where_it_ran():
    """The twin leaks more and has more seeds, but it is another training."""
    twins = [record("sap", OFF, s, leaks=[leak(0.9)], undefended=True) for s in range(3)]
    none = [record("none", {}, s, leaks=[leak(0.8)], undefended=True) for s in range(2)]
    assert undefended_row(results_table([*twins, *none])).defense == "none"
    assert undefended_row(results_table(twins)).defense == "sap"
    assert undefended_row(results_table([record("sap", ON, 0, leaks=[leak(0.5)])])) is None


@pytest.mark.parametrize("word", ["inputs", "inversion", "input", "texts", "Inputs"])
def test_a_goal_is_taken_by_any_of_its_names(word):
    assert goal_of(word).value == "inversion"


def test_an_unknown_goal_is_refused_with_the_list():
    with pytest.raises(LeakboardError, match=r"unknown 'lables'\. Did you mean 'labels'\?$"):
        goal_of("lables")
    with pytest.raises(
        LeakboardError, match=r"Known: inputs, identity, labels, .*, members, model\.$"
    ):
        goal_of("colour")


def test_no_interval_of_a_success_ends_above_what_an_attack_can_reach():
    successes = enumerate((0.99, 0.8, 0.99))
    (row,) = results_table([record("sap", {"eta": 75.0}, s, leaks=[leak(x)]) for s, x in successes])
    assert row.success.high == 1.0
    assert row.success.low < 0.8
