"""The answer at the end of a run, in three lines."""

from __future__ import annotations

from experiments import compared
from records import leak

from leakboard.bench.contracts import Channel, Goal
from leakboard.leaderboards.tables.results import results_table
from leakboard.leaderboards.terminal import ending


def told(records):
    return ending(results_table(records))


def test_three_lines_say_what_is_read_what_helps_and_how_sure():
    read, helps, sure = told(compared())
    assert read == (
        "What is read: without a defense, inputs: token accuracy 0.99 (baseline 0.05; eia-nn)."
    )
    assert helps == (
        "What helps: within 3 points, inputs: nothing halves it (least: SAP, η = 110, 91 % for 1.0 of the 40.2 points gained)."
    )
    assert sure.startswith("How sure: ")
    assert "3 seeds; intervals cover 95 %" in sure


def test_what_a_defense_gives_away_beside_its_goal_is_told():
    def labels(success):
        return leak(success, "unmix", Goal.LABEL, 0.5, channel=Channel.GRADIENTS)

    def with_labels(success):
        return told(
            [
                one.model_copy(
                    update={"leaks": (*one.leaks, labels(1.0 if one.undefended else success))}
                )
                for one in compared()
                if one.leaks
            ]
        )[0]

    assert with_labels(1.0).endswith("eia-nn). Also leaked: labels (SAP).")
    assert with_labels(0.65).endswith("eia-nn).")


def test_a_setting_that_halves_what_is_read_is_named():
    assert (
        "inputs: SAP, η = 75 leaves 48 % for 1.0 of the 40.2 points gained."
        in told(compared({75.0: (0.5, 0.89)}))[1]
    )


def test_where_all_is_dearer_the_cheapest_that_helps_is_told():
    line = told(compared({75.0: (0.5, 0.8), 50.0: (0.2, 0.7)}))[1]
    assert (
        "nothing (the cheapest that helps: SAP, η = 75, 48 % for 10.0 of the 40.2 points gained)"
        in line
    )
    assert (
        "within 12 points, inputs: SAP, η = 75"
        in ending(results_table(compared({75.0: (0.5, 0.8)})), 12)[1]
    )


def test_what_is_not_certified_is_not_praised():
    read, helps, sure = told(compared(twin=0.1))
    assert "inputs: not certified" in read
    assert "no setting is known to help" in helps
    assert "nothing follows" in sure


def test_a_setting_that_learnt_nothing_is_not_recommended():
    assert "no setting is known to help" in told(compared({10.0: (0.1, 0.49)}))[1]


def test_many_tasks_are_cut_short_in_three_lines():
    lines = told([one for name in "abcdef" for one in compared(task=name)])
    assert len(lines) == 3
    assert "inputs of d: " in lines[0]
    assert "inputs of e: " not in lines[0]
    assert "and 2 more goals" in lines[0]


def test_records_without_a_question_end_without_an_answer():
    assert told([]) == []
