"""Curves have a point for each training; several goals are hidden as far as that of which most leaks."""

from __future__ import annotations

import pytest
from records import leak, record

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.leaderboards.site.answers import questions_of
from leakboard.leaderboards.tables.choices import choose
from leakboard.leaderboards.tables.curves import BOTH, curves, joint_results
from leakboard.leaderboards.tables.rankings import rankings
from leakboard.leaderboards.tables.results import results_table

ETAS = {110.0: (0.9, 0.6, 0.88), 75.0: (0.4, 0.6, 0.87), 50.0: (0.2, 0.6, 0.6)}
"""Of SAP with a frozen vendor: tokens and labels that are read, and utility."""


def reads(tokens, labels, labels_goal=True):
    more = [leak(labels, "public-label", Goal.LABEL, 0.5, channel=Channel.REPRESENTATIONS)]
    return [leak(tokens), *(more if labels_goal else [])]


def measured(labels_goal=True, twin=True):
    made = []
    for seed in range(3):
        add = seed / 500
        made.append(record("none", {}, seed, 0.9 + add, reads(1.0, 1.0), "sst2", undefended=True))
        made.append(record("untuned", {}, seed, 0.5, [], "sst2"))
        made.append(record("sap", {"eta": 50.0}, seed, 0.9 + add, reads(0.1, 1.0), "sst2"))
        made.append(record("frozen", {}, seed, 0.9 + add, reads(1.0, 0.6), "sst2"))
        if twin:
            off = {"eta": None}
            made.append(
                record("sap+none", off, seed, 0.9, reads(1.0, 1.0), "sst2", undefended=True)
            )
        for eta, (tokens, labels, utility) in ETAS.items():
            found = reads(tokens + add, labels + add, labels_goal)
            made.append(record("sap+frozen", {"eta": eta}, seed, utility + add, found, "sst2"))
    return results_table(made)


def test_the_goal_of_which_most_leaks_decides():
    rows = {row.setting.knob_value: row for row in joint_results(measured(), BOTH)}
    assert sorted(rows) == [50, 75, 110]
    assert rows[110].attack == "eia-nn"
    assert rows[110].leakage.value == pytest.approx((0.902 - 0.05) / 0.95, abs=1e-3)
    assert rows[50].attack == "public-label"
    assert rows[50].leakage_by_seed[0] == pytest.approx(0.2)


def test_choose_answers_which_setting_hides_both_within_a_budget():
    choice = choose(measured(), "sst2", "texts and labels", 4)
    assert choice.setting.setting.knob_value == 75
    assert choice.why.startswith(
        "Inputs and labels of sst2, at most 4 points: SAP + frozen encoder, η = 75"
    )
    assert {one.goal for one in choice.each} == set(BOTH)
    assert "labels" in repr(choice)
    assert not choose(measured(), "sst2", "labels and inputs", 1)


def test_what_hides_one_of_both_is_no_answer():
    assert {row.defense for row in joint_results(measured(), BOTH)} == {"sap+frozen"}


def test_without_a_certificate_for_each_goal_there_is_no_answer():
    assert not choose(measured(twin=False), "sst2", "texts and labels", 4)
    assert joint_results(measured(labels_goal=False), BOTH) == []


def test_boards_and_the_front_ask_for_both_at_once():
    (both,) = (one for one in rankings(measured(), 4) if one.also)
    assert both.words == "inputs and labels"
    assert [entry.setting.setting.knob_value for entry in both.within] == [75]
    assert Goal.LABEL not in both.within[0].gives_away
    (question,) = (one for one in questions_of(measured()) if one.ranking.also)
    assert question.word == "texts and labels"
    assert "SAP + frozen encoder" in "".join(question.rows(5.0))


def test_an_unknown_word_of_several_is_named():
    with pytest.raises(LeakboardError, match="unknown 'lables'"):
        choose(measured(), "sst2", "texts and lables")


def trained_twice(short, long, attack="eia-nn"):
    """Results of SAP at one η after 2 and 30 epochs, each with the success of its attack and its utility."""
    made = []
    for seed in range(3):
        add = seed / 500
        made.append(record("none", {}, seed, 0.9 + add, reads(1.0, 1.0), "sst2", undefended=True))
        made.append(record("untuned", {}, seed, 0.5, [], "sst2"))
        for epochs, (tokens, utility) in {2: short, 30: long}.items():
            found = [leak(tokens + add)]
            if epochs == 30 and attack != "eia-nn":
                found = [leak(tokens / 2 + add), leak(tokens + add, attack)]
            made.append(
                record("sap", {"eta": 75.0}, seed, utility + add, found, "sst2", epochs=epochs)
            )
        off = {"eta": None}
        made.append(record("sap", off, seed, 0.9, reads(1.0, 1.0), "sst2", undefended=True))
    return results_table(made)


def test_another_training_is_another_setting():
    table = trained_twice((0.4, 0.7), (0.3, 0.86))
    (curve,) = (one for one in curves(table) if one.defense == "sap" and one.goal == Goal.INVERSION)
    assert [round(one.cost.value) for one in curve.results] == [20, 4]
    assert curve.cost_of_halving().value.value == pytest.approx(4)
    assert "epochs = 30" in choose(table, "sst2", "inputs", 5).why


def test_an_attack_at_some_seeds_only_did_not_run():
    made = [leak(0.5), leak(0.9, "eia-bayes")]
    records = [
        record("sap", {"eta": 75.0}, seed, 0.8, made[: 1 + (seed > 0)]) for seed in (0, 1, 2)
    ]
    records += [record("none", {}, seed, 0.9, made, undefended=True) for seed in (0, 1, 2)]
    rows = {one.defense: one for one in results_table(records) if one.goal == Goal.INVERSION}
    assert rows["sap"].attacks == {("eia-nn", 1)}
    assert rows["none"].attacks == {("eia-nn", 1), ("eia-bayes", 1)}


def test_few_attacks_on_a_training_are_no_advantage():
    """The attack that reads most after 30 epochs did not run after 2."""
    table = trained_twice((0.1, 0.88), (0.9, 0.86), "eia-bayes")
    (curve,) = (one for one in curves(table) if one.defense == "sap" and one.goal == Goal.INVERSION)
    assert {one.attack for one in curve.results} == {"eia-bayes"}
    titles = {one.setting.first.cell.train.epochs: one.attack_title for one in curve.results}
    assert titles == {2: "eia-bayes on another training", 30: "eia-bayes"}
    assert curve.cost_of_halving().setting is None


def test_a_row_that_all_its_seeds_certify_is_read_on_some_of_them():
    made = []
    for seed, clear in enumerate([0.2, 0.5, 0.4, 0.41, 0.4]):  # three alone do not certify
        without, found = ([leak(success, chance=0.0)] for success in (clear, 0.2))
        made.append(record("sap", {"eta": None}, seed, 0.9, without, "sst2", undefended=True))
        made.append(record("sap", {"eta": 75.0}, seed, 0.89, found, "sst2"))
    (curve,) = curves(results_table(made))
    row, fewer = curve.results[0], curves(results_table(made[:6]))[0].results[0]
    assert row.is_certified
    assert not fewer.is_certified
    assert row.on({0, 1, 2}).leakage.value == pytest.approx(0.2 / 0.3667, abs=1e-3)


def weakly_attacked(weak, undefended=0.4, more=(), **fields):
    """SAP at 75 by an attack that reads 0.9 without it, and at 50 by one that reads `weak` of `undefended`, and by `more`."""
    made = []
    for seed in range(3):
        add = seed / 1000
        for eta, strong in ((75.0, True), (50.0, False)):
            clear, found = (0.9, 0.8) if strong else (undefended, weak)
            for knob, read in ((None, clear), (eta, found)):
                given = {} if strong else fields
                leaks = [leak(read + add * (read < 1), chance=0.0, **given)]
                leaks += () if strong else more
                made.append(
                    record(
                        *("sap", {"eta": knob}, seed, 0.9 - add, leaks, "sst2"),
                        undefended=knob is None,
                        limit=500 if strong else 600,
                    )
                )
            made.append(record("untuned", {}, seed, 0.5, [], "sst2", limit=500 if strong else 600))
    return results_table(made)


def test_a_setting_that_only_weak_attacks_met_is_not_compared():
    table = weakly_attacked(0.1)
    (curve,) = curves(table)
    assert len(curve.certified) == 2
    assert [row.setting.knob_value for row in curve.priced] == [75]
    assert choose(table, "sst2", "texts", 3).setting.setting.knob_value == 75


@pytest.mark.parametrize(("goal", "compared"), [("inversion", [75]), ("label", [75, 50])])
def test_a_setting_on_which_an_attack_failed_is_not_compared(goal, compared):
    failed = leak(None, "eia-bayes", Goal(goal), status="failed", reason="RuntimeError")
    (curve,) = curves(weakly_attacked(0.3, undefended=0.9, more=[failed]))
    assert [row.setting.knob_value for row in curve.priced] == compared


def test_what_sends_less_is_not_weakly_attacked():
    """What is read from another channel is no measure of the attacks on this one."""
    (curve,) = curves(weakly_attacked(0.1, channel=Channel.ACTIVATIONS))
    assert [row.setting.knob_value for row in curve.priced] == [75, 50]


def test_what_is_read_whole_is_compared_whatever_its_twin_shows():
    (curve,) = curves(weakly_attacked(1.0, undefended=0.1))
    assert {row.setting.knob_value for row in curve.priced} == {75, 50}
