"""ROUGE-L and exact match of answers."""

from __future__ import annotations

import pytest

from leakboard.bench.scoring import rescoring
from leakboard.bench.scoring.answers import answer_fields, rouge_l

REFERENCE = [
    ("the cat sat on the mat", "the cat is on the mat", 0.833333),
    ("Hello, Agent! It's 42.", "hello agent it is 42", 0.8),
    ("a b c d e f g", "g f e d c b a", 0.142857),
    ("a a b", "a b a b", 0.857143),
    ("", "anything", 0.0),
    ("nothing alike", "quite another", 0.0),
    ("same", "Same.", 1.0),
]
"""As the package rouge-score 0.1.2 has them, without stemming."""
READ = {
    "utility_metric": "next-token accuracy",
    "utility": None,
    "measures": {},
    "predictions": {"hits": [0], "tokens": [1]},
}


@pytest.mark.parametrize(("answer", "right", "expected"), REFERENCE)
def test_rouge_is_that_of_the_package(answer, right, expected):
    assert rouge_l(answer, right) == pytest.approx(expected, abs=1e-6)


def test_of_answers_of_one_word_it_is_the_share_of_right_ones_and_guessing_the_share_of_the_usual_one():
    right = ["positive"] * 6 + ["negative"] * 4
    answers = ["positive"] * 5 + ["negative"] * 5
    found = answer_fields(answers, right, READ)
    utility, exact = found["utility"], found["measures"]["exact match"]
    assert utility.value == exact.value == 0.9
    assert utility.chance == exact.chance == 0.6
    assert (found["utility_metric"], utility.n) == ("ROUGE-L", 10)
    assert found["measures"]["next-token accuracy"] is None


def test_white_space_does_not_tell_answers_apart_and_case_does_from_a_match_word_for_word():
    found = answer_fields(
        ["your  parcel left ", "Your parcel left"], ["your parcel left"] * 2, READ
    )
    assert found["utility"].value == 1
    assert found["measures"]["exact match"].value == 0.5


def test_a_record_keeps_what_its_utility_was_computed_from():
    answers = ["the parcel", "a refund was sent", "no"]
    right = ["the parcel left", "the refund was sent", "yes"]
    found = answer_fields(answers, right, READ)
    utility = rescoring._utility(found["utility_metric"], found["predictions"])
    assert utility["value"] == found["utility"].value == pytest.approx((0.8 + 0.75) / 3, abs=1e-4)
    assert (utility["low"], utility["high"]) == (found["utility"].low, found["utility"].high)
