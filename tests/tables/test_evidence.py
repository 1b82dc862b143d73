"""What counts as shown about a setting, and what is chosen and said by it."""

from __future__ import annotations

import pytest
from records import leak, record

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.threat import Goal
from leakboard.leaderboards.tables.choosing import HIDES, choose
from leakboard.leaderboards.tables.comparisons import comparisons
from leakboard.leaderboards.tables.evidence import evidence

pytestmark = pytest.mark.usefixtures("certified")

CHANCE = 0.2


def cells(defense, utility, success, params=None, attack="eia-nn", **fields):
    """Two seeds of a setting; `none` is undefended."""
    undefended = fields.pop("undefended", defense == "none")
    found = leak(success, attack, chance=CHANCE, goal=fields.pop("goal", "inversion"))
    found = found.model_copy(update=fields.pop("told", {}))
    return [
        record(defense, params, seed, utility, [found], undefended=undefended, **fields)
        for seed in (0, 1)
    ]


OPEN = cells("none", 0.9, 0.95)
MILD = cells("sap", 0.89, 0.6, {"eta": 100.0})
STRONG = cells("sap", 0.8, 0.25, {"eta": 50.0})
SHUT = cells("blackout", 0.5, 0.2)
ALL = [*OPEN, *MILD, *STRONG, *SHUT]


def answer(records, max_cost=0.02, task="reviews", hide="inputs"):
    return choose(comparisons(records), task, hide, max_cost)


def test_the_least_leak_within_the_budget_is_chosen_with_its_evidence():
    chosen = answer(ALL, 0.02)
    assert chosen
    one = chosen.setting
    assert (one.setting, one.params, one.seeds) == ("sap η=100", {"eta": 100.0}, 2)
    assert (one.leak.attack, one.leak.success.value, one.leak.chance) == ("eia-nn", 0.6, CHANCE)
    assert one.open.success.value == 0.95
    assert one.cost.value == pytest.approx(0.01)
    assert set(one.keys) == {r.key for r in MILD}
    assert answer(ALL, 0.2).setting.setting == "sap η=50"
    assert answer(ALL, 1.0).setting.setting == "blackout"


def test_where_all_that_helps_costs_more_the_nearest_is_named_with_its_cost():
    chosen = answer(ALL, 0.005)
    assert not chosen
    assert chosen.setting is None
    assert chosen.nearest.setting == "sap η=100"
    assert "costs more" in repr(chosen)
    assert "0.010" in repr(chosen)


def test_a_setting_that_leaks_as_much_as_no_protection_is_no_answer():
    low, high = (cells("sap", 0.9, success, {"eta": 500.0}) for success in (0.94, 0.96))
    idle = [low[0], high[1]]
    chosen = answer([*OPEN, *idle], 0.2)
    assert not chosen
    assert chosen.why == "at no setting does clearly less leak than without protection"


def test_what_nobody_attacked_is_not_measured():
    assert answer(ALL, hide="secrets").why.startswith("not measured: no attack on secrets")


def test_the_front_leaves_out_what_another_setting_improves_on():
    worse = cells("dc", 0.85, 0.7)  # dearer than sap at η = 100, and leaks more
    chosen = answer([*ALL, *worse], 0.02)
    assert [one.setting for one in chosen.front] == ["sap η=100", "sap η=50", "blackout"]


def test_an_offer_stands_for_the_worst_that_may_befall_it(monkeypatch):
    missed = cells("redacted", 0.9, 0.8, {"detector": "exact", "canaries": "missed"})
    masked = cells("redacted", 0.9, 0.3, {"detector": "exact", "canaries": "masked"})
    (one,) = evidence(comparisons([*OPEN, *missed, *masked]), Goal.INVERSION)
    assert one.leak.success.value == 0.8
    assert set(one.keys) == {r.key for r in [*missed, *masked]}


def test_the_comparison_in_which_most_leaks_speaks_for_a_setting():
    # The same setting, trained and attacked elsewhere by a stronger attack.
    again = [
        *cells("none", 0.9, 0.95, epochs=5, attack="eia-map"),
        *cells("sap", 0.895, 0.9, {"eta": 100.0}, epochs=5, attack="eia-map"),
    ]
    (one,) = [
        e
        for e in evidence(comparisons([*ALL, *again]), Goal.INVERSION)
        if e.params == {"eta": 100.0}
    ]
    assert (one.leak.attack, one.leak.success.value) == ("eia-map", 0.9)


def test_another_metric_is_compared_by_what_it_leaves_of_privacy():
    other = cells("sap", 0.89, 0.6, {"eta": 100.0}, told={"metric": "AUC"})
    (one,) = evidence(comparisons([*OPEN, *other]), Goal.INVERSION)
    assert one.leak.metric == "AUC"
    assert one.open.metric == "token accuracy"
    assert one.helps
    assert one.leak.kept.value == pytest.approx(0.4 / 0.8)


def test_the_answer_says_whether_anything_is_left_and_how_sure_the_cost_is():
    assert "still clearly more than guessing finds" in answer(ALL, 0.02).why
    assert "nothing is left that beats guessing clearly" in answer(ALL, 1.0).why
    told = repr(answer(ALL, 0.02))
    assert told.startswith("inputs of reviews, at a cost of at most 0.02 of utility: sap η=100\n")
    assert "eia-nn reaches 0.600 [0.600, 0.600] (token accuracy; guessing 0.200)" in told
    assert MILD[0].key in told


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"task": "review"}, "task: no records of 'review'. Did you mean 'reviews'?"),
        ({"hide": "input"}, "hide: unknown 'input'. Did you mean 'inputs'?"),
        ({"max_cost": 2}, "max_cost: expected a share of utility from 0 to 1, such as 0.02"),
        ({"max_cost": "little"}, "max_cost: expected a share"),
        ({"max_cost": True}, "max_cost: expected a share"),
        ({"max_cost": float("nan")}, "max_cost: expected a share"),
    ],
)
def test_what_cannot_be_asked_is_told(asked, told):
    with pytest.raises(LeakboardError, match=told):
        answer(ALL, **asked)


def test_everything_that_can_be_hidden_has_a_goal_of_its_own():
    assert set(HIDES.values()) == set(Goal)
