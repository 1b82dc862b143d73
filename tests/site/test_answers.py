"""The front page: its answers come from the results table, and its script only selects among them."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest
from records import leak, record

from leakboard.bench.contracts.threat import Goal
from leakboard.leaderboards.site.answers import BUDGETS, front_data, questions_of, words_of
from leakboard.leaderboards.tables.curves import choose, curves
from leakboard.leaderboards.tables.results import results_table

FRONT = ("index.html", "assets/style.css", "assets/site.js", "data/front.js")
HEAVIEST = 400_000
"""Bytes of the front page with all that it loads."""


def cells(defense, utility, success, params=None, label=1.0, **fields):
    """Three seeds of a setting on which texts and labels are read."""
    return [
        record(
            defense,
            params,
            seed,
            utility + 0.001 * seed,
            [leak(success + 0.001 * seed), leak(label, "logit-gradient", Goal.LABEL, 0.5)],
            **fields,
        )
        for seed in (0, 1, 2)
    ]


def baselines():
    return [
        *cells("none", 0.90, 0.99, undefended=True),
        *cells("untuned", 0.50, 0.99, undefended=True),
        *cells("sap", 0.90, 0.99, {"eta": None}, undefended=True),
        *cells("sap-cti", 0.90, 0.99, {"eta": None}, undefended=True),
    ]


MILD = cells("sap", 0.88, 0.80, {"eta": 90.0})
STRONG = cells("sap", 0.83, 0.20, {"eta": 50.0})
DEAR = cells("sap-cti", 0.75, 0.10, {"eta": 50.0})


def answers(*records):
    return questions_of(results_table([*baselines(), *records]))


def text_of(markup):
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", str(markup))).split())


def test_a_larger_budget_buys_the_setting_that_leaks_less():
    found = answers(*MILD, *STRONG)
    (question,) = found
    assert (question.word, question.place) == ("inputs", "reviews, minilm")
    at = {budget: text_of(question.answer(budget).table) for budget in BUDGETS}
    assert "1. SAP η = 90" in at[3.0]
    assert "1. SAP η = 50" in at[10.0]
    assert "1." not in at[1.0].split("For comparison")[0].replace("1.0", "")


def test_the_sentence_is_that_of_choose_and_the_first_row_its_setting():
    found = answers(*MILD, *STRONG, *DEAR)
    (question,) = found
    table = results_table([*baselines(), *MILD, *STRONG, *DEAR])
    for budget in BUDGETS:
        answer, chosen = question.answer(budget), choose(table, "reviews", "inputs", budget)
        assert str(answer.choice) == str(chosen)
        first = re.search(r"1\. (\S+) (η = \d+)", text_of(answer.table))
        assert (first is not None) == bool(chosen)
        if first:
            assert f"{first[1]}, {first[2]}" == chosen.setting.name


def test_what_costs_more_stands_below_a_line_and_baselines_below_another():
    found = answers(*MILD, *DEAR)
    text = text_of(found[0].answer(3.0).table)
    ranked, rest = text.split("Costs more than 3 points at every measured setting")
    dear, plain = rest.split("For comparison")
    assert "SAP η = 90" in ranked
    assert "SAP-CTI η = 50" in dear
    assert "No protection 100 % 0.0" in plain
    assert "Untuned model" in plain


def test_what_may_hide_nothing_has_no_rank():
    unclear = [
        record("sap", {"eta": 90.0}, seed, 0.89 + 0.001 * seed, [leak(success)])
        for seed, success in enumerate((0.99, 0.5, 0.9))
    ]
    found = answers(*unclear)
    text = text_of(found[0].answer(3.0).table)
    assert "1. SAP" not in text
    assert "Costs at most 3 points, but does not clearly reduce leakage SAP" in text


def test_a_row_says_what_else_its_setting_gives_away():
    found = answers(*MILD)
    assert "labels 100 %" in text_of(found[0].answer(3.0).table)


def test_only_defenses_made_for_the_goal_are_asked_for_and_ranked():
    found = answers(*MILD, *cells("dc", 0.89, 0.05, {"weight": 0.5}))
    assert {question.word for question in found} == {"inputs", "labels"}
    inputs = next(question for question in found if question.word == "inputs")
    assert [curve.defense for curve in inputs.curves] == ["sap"]
    assert "DC" not in text_of(inputs.answer(10.0).table)


def test_what_is_not_certified_is_listed_with_its_reason_and_has_no_number():
    weak = [
        *cells("none", 0.9, 0.06, undefended=True),
        *cells("untuned", 0.5, 0.06, undefended=True),
    ]
    weak += [
        *cells("sap", 0.9, 0.06, {"eta": None}, undefended=True),
        *cells("sap", 0.9, 0.05, {"eta": 50.0}),
    ]
    found = questions_of(results_table(weak))
    answer = found[0].answer(3.0)
    assert "SAP is not certified: no attack is shown to work even without the defense" in text_of(
        answer.unranked
    )
    assert "η = 50" not in text_of(answer.table)
    assert "not certified" in answer.choice.why


def test_a_setting_that_learnt_nothing_has_no_rank_and_the_reason_stands_there():
    found = answers(*cells("sap", 0.50, 0.10, {"eta": 50.0}))
    answer = found[0].answer(10.0)
    assert "not clearly above the untuned model" in text_of(answer.unranked)
    assert "η = 50" not in text_of(answer.table)


def test_the_verdict_of_a_curve_names_both_summaries():
    (curve,) = [
        c
        for c in curves(results_table([*baselines(), *MILD, *STRONG]))
        if c.defense == "sap" and c.goal == Goal.INVERSION
    ]
    words = " ".join(words_of(curve))
    assert re.search(
        r"On reviews \(minilm\) it leaks 8\d % .*of the inputs for at most 3 points \(η = 90\)",
        words,
    )
    assert "Halving the leakage costs 7.0 points (η = 50)." in words


def test_the_data_of_the_page_hold_every_answer_once():
    found = answers(*MILD, *STRONG)
    data = front_data(found)
    (places,) = data["questions"].values()
    (one,) = places.values()
    assert list(one["budgets"]) == ["1", "3", "5", "10"]
    for budget, (sentence, part) in one["budgets"].items():
        answer = found[0].answer(float(budget))
        assert (sentence, data["parts"][part]) == (answer.choice.why, str(answer.table))
    assert len(set(data["parts"])) == len(data["parts"])


# In a browser


def test_without_a_script_the_default_answer_and_its_table_are_there(open_page, site):
    page = open_page(scripts=False)
    data = json.loads(
        (site / "data" / "front.js").read_text("utf-8").split("=", 1)[1].rstrip(";\n")
    )
    asked = data["questions"]["inputs"]["reviews, minilm"]["budgets"]["3"]
    assert page.locator("#answer").inner_text() == asked[0]
    assert page.locator("#table tbody tr").count() > 2
    assert page.locator("#plot svg").count() > 0
    assert not page.locator("#question").is_visible()


def test_a_choice_changes_the_answer_by_keyboard_and_stands_in_the_address(open_page):
    page = open_page()
    before = page.locator("#answer").inner_text()
    page.locator("select[name=lose]").focus()
    page.keyboard.press("End")
    page.wait_for_function("location.hash.includes('lose=10')")
    assert page.locator("select[name=lose]").input_value() == "10"
    after = page.locator("#answer").inner_text()
    assert after != before
    assert "at most 10 points" in after
    again = open_page(f"index.html{page.evaluate('location.hash')}")
    assert again.locator("#answer").inner_text() == after


def test_every_question_can_be_asked_and_an_unknown_one_in_the_address_is_ignored(open_page):
    page = open_page("index.html#hide=nonsense&on=nowhere&lose=-1")
    hide, on = page.locator("select[name=hide]"), page.locator("select[name=on]")
    assert hide.input_value() == "inputs"
    for goal in hide.locator("option").all_inner_texts():
        hide.select_option(goal)
        for place in on.locator("option").all_inner_texts():
            on.select_option(place)
            task = place.rpartition(",")[0]
            assert page.locator("#answer").inner_text().startswith(f"{goal.capitalize()} of ")
            assert task.lower() in page.locator("#answer").inner_text().lower()


def test_the_front_page_with_all_that_it_loads_is_small(site):
    assert sum((site / path).stat().st_size for path in FRONT) < HEAVIEST
    page = (site / "index.html").read_text("utf-8")
    loads = re.findall(r'<(?:script src|link rel="stylesheet" href)="([^"]+)"', page)
    assert {*loads} == {*FRONT} - {"index.html"}


@pytest.mark.parametrize("width", [390, 1440])
def test_the_table_fits_the_screen(open_page, width):
    page = open_page(width=width)
    cut = "box => box.scrollWidth > box.clientWidth + 1"
    assert not page.locator("#table").evaluate(cut)
