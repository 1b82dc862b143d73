"""Rankings: who is ranked, at which setting, and with which rank."""

from __future__ import annotations

import pytest
from experiments import compared
from records import leak, record

from leakboard.bench.contracts import Goal, LeakboardError
from leakboard.leaderboards.tables.defenses import attacks_of_authors
from leakboard.leaderboards.tables.leakage import BY_AUTHORS
from leakboard.leaderboards.tables.rankings import rankings, results_under
from leakboard.leaderboards.tables.results import results_table
from leakboard.leaderboards.terminal.boards import board_table


def ranked(records, budget=3.0):
    return rankings(results_table(records), budget)


def other(name, params, success, utility):
    """The seeds of another defense beside those of `compared`."""
    return [
        record(name, params, seed, utility + seed / 500, [leak(success + seed / 500)], "sst2")
        for seed in range(3)
    ]


def with_rapt(success, utility=0.89):
    off = [
        record("rapt", {"eta": None}, s, 0.9, [leak(0.99)], "sst2", undefended=True)
        for s in range(3)
    ]
    return compared() + off + other("rapt", {"eta": 75.0}, success, utility)


def test_each_defense_stands_at_its_setting_that_leaks_least_within_the_budget():
    for budget, label in ((3, "η = 110"), (6, "η = 75"), (30, "η = 50")):
        (one,) = ranked(compared(), budget)
        (entry,) = one.within
        assert (entry.rank, entry.setting.setting.label) == (1, f"{label}")
        assert one.over == ()


def test_where_nothing_is_within_the_budget_the_cheapest_stands_below_without_a_rank():
    (one,) = ranked(compared({90.0: (0.7, 0.8), 50.0: (0.2, 0.7)}))
    assert one.within == ()
    (entry,) = one.over
    assert (entry.rank, entry.setting.setting.label) == (0, "η = 90")
    assert entry.halving.setting.setting.label == "η = 50"


def test_a_setting_that_was_chosen_on_the_reported_numbers_is_said_to_be():
    every = compared()
    (one,) = ranked(every)
    assert [entry.note for entry in one.within] == [""]
    (one,) = ranked([r for r in every if r.cell.defense.params != {"eta": 75.0} or not r.cell.seed])
    (entry,) = one.entries
    assert entry.note.endswith("the settings share fewer than two seeds")
    assert any(entry.note in note for note in board_table(one).notes)


def test_defenses_that_do_not_clearly_differ_share_a_rank():
    # SAP leaks 0.9 at this cost, and its numbers differ by the seed as those of RAPT do.
    close = with_rapt(0.9)
    for n, one in enumerate(close):
        if one.cell.defense.name == "rapt" and not one.undefended:
            found = [leak(0.9 + (-1) ** one.cell.seed / 50)]
            close[n] = one.model_copy(update={"leaks": found})
    (one,) = ranked(close)
    assert [entry.rank for entry in one.within] == [1, 1]
    (one,) = ranked(with_rapt(0.6))
    assert [(entry.rank, entry.curve.title) for entry in one.within] == [(1, "RAPT"), (2, "SAP")]


def test_only_defenses_made_for_a_goal_are_ranked_and_the_rest_is_said_to_be_given_away():
    (one,) = ranked(compared(labels=0.95))  # SAP is not made to hide labels
    assert one.goal == Goal.INVERSION
    (entry,) = one.within
    assert entry.gives_away == {Goal.LABEL: pytest.approx(1.0)}
    assert entry.gives_away_words == "labels 100 %"


def test_what_a_setting_hides_beside_its_goal_is_told_as_zero_and_what_nothing_reads_is_left_out():
    hidden = [
        one.model_copy(update={"leaks": [*one.leaks[:-1], leak(0.45, "kmeans", Goal.LABEL, 0.5)]})
        if one.cell.defense.params.get("eta")
        else one
        for one in compared(labels=0.95)
    ]
    (one,) = ranked(hidden)
    assert one.within[0].gives_away_words == "labels 0 %"
    (one,) = ranked(compared(labels=0.5))
    assert one.within[0].gives_away_words == ""


def test_what_is_not_certified_or_has_no_cost_has_no_rank():
    (one,) = ranked(compared(twin=0.1))
    assert (one.within, one.over, one.unpriced) == ((), (), ())
    assert [curve.title for curve in one.uncertified] == ["SAP"]
    (one,) = ranked(compared({10.0: (0.1, 0.49)}))
    assert [curve.title for curve in one.unpriced] == ["SAP"]


def test_no_protection_stands_beside_the_ranking():
    (one,) = ranked(compared())
    assert [result.defense for result in one.baselines] == ["none"]


def test_no_protection_is_shown_where_attacks_work_although_other_examples_have_more_seeds():
    blind = [
        record("none", {}, seed, 0.9, [leak(0.06)], "sst2", limit=100, undefended=True)
        for seed in range(9)
    ]
    (one,) = ranked([*compared(), *blind])
    (baseline,) = one.baselines
    assert baseline.is_certified


@pytest.mark.parametrize("budget", [-1, "3", True, 101])
def test_a_budget_is_a_number_of_points(budget):
    with pytest.raises(LeakboardError, match="budget: expected points of utility"):
        ranked(compared(), budget)


def test_the_attacks_of_p3efts_authors_are_read_at_the_worst_moment_as_they_report():
    for defense in ("p3eft", "dc"):
        assert attacks_of_authors(defense) == attacks_of_authors(defense, Goal.LABEL) == BY_AUTHORS


def test_the_attack_of_the_authors_or_one_by_name_can_decide():
    table = results_table(compared())
    assert results_under(table, "strongest") is table
    theirs = results_under(table, "paper")
    assert {one.attack for one in theirs} == {"eia-nn"}
    assert {one.defense for one in theirs} == {"sap"}
    weaker = results_under(table, "eia-learned")
    assert {one.attack for one in weaker if not one.setting.undefended} == {"eia-learned"}
    with pytest.raises(LeakboardError, match="Did you mean 'eia-nn'"):
        results_under(table, "eia-n")
