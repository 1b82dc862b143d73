"""The front page: its answers come from the results table, and its script only selects among them."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest
from paths import ROOT
from records import estimate, leak, record

from leakboard.bench.contracts.threat import Goal
from leakboard.leaderboards.findings import model_name
from leakboard.leaderboards.site.answers import (
    BUDGETS,
    front_data,
    plot_of,
    questions_of,
    words_of,
    words_to_hide,
)
from leakboard.leaderboards.site.markup import anchor, word_of
from leakboard.leaderboards.tables.choices import choose
from leakboard.leaderboards.tables.curves import curves
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


def text_of(*markup):
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", "\n".join(markup))).split())


def table_of(question, budget=3.0):
    return text_of(*question.rows(budget))


def sentence_of(question, budget=3.0):
    return question.sentence(budget).replace("\u00a0", " ")


def test_a_larger_budget_buys_the_setting_that_leaks_less():
    (question,) = answers(*MILD, *STRONG)
    assert (question.word, question.task, question.model) == ("texts", "reviews", "minilm")
    assert table_of(question, 3.0).startswith("1 SAP η = 90")
    assert table_of(question, 10.0).startswith("1 SAP η = 50")
    assert table_of(question, 1.0).startswith("Over the budget")


def test_the_sentence_says_what_the_budget_buys_and_what_half_costs():
    (question,) = answers(*MILD, *STRONG)
    half = "Halving what is read costs 7.0 of the 40.0 points gained (SAP, η = 50)."
    assert (
        sentence_of(question, 1.0)
        == f"Texts: within 1 point no measured setting clearly hides anything. {half}"
    )
    assert re.fullmatch(
        rf"Texts: within 3 points the most that is hidden is \d\d % \(SAP, η = 90\)\. {re.escape(half)}",
        sentence_of(question),
    )
    assert re.fullmatch(
        r"Texts: within 10 points SAP, η = 50 hides \d\d %\.", sentence_of(question, 10.0)
    )
    (question,) = answers(*MILD)
    assert sentence_of(question).endswith(
        "No measured setting whose cost can be compared halves what is read."
    )


def test_settings_that_leak_alike_are_named_together():
    dearer = cells("rapt", 0.875, 0.80, {"eta": 90.0})
    twin = cells("rapt", 0.90, 0.99, {"eta": None}, undefended=True)
    (question,) = answers(*MILD, *cells("sap-cti", 0.88, 0.80, {"eta": 90.0}), *dearer, *twin)
    assert re.search(r"20 % \((SAP or SAP-CTI|SAP-CTI or SAP), η = 90\)", sentence_of(question))


def test_the_best_setting_is_that_of_choose_and_the_first_row():
    found = (*MILD, *STRONG, *DEAR)
    (question,) = answers(*found)
    table = results_table([*baselines(), *found])
    for budget in BUDGETS:
        chosen = choose(table, "reviews", "texts", budget)
        assert (table_of(question, budget)[:2] == "1 ") == bool(chosen)
        if chosen:
            assert chosen.setting.name in sentence_of(question, budget)
            assert question.best(budget).setting.name == chosen.setting.name
            assert chosen.setting.name in text_of(question.evidence(budget))


def test_the_evidence_says_how_sure_the_answer_is():
    (question,) = answers(*MILD)
    text = text_of(question.evidence(3.0))
    assert re.search(r"SAP, η = 90: 8\d % .*still readable, 2\.0 points lost", text)
    assert "over 3 seeds of 400 cases" in text


def test_what_costs_more_stands_below_a_line_and_baselines_below_another():
    (question,) = answers(*MILD, *DEAR)
    ranked, rest = table_of(question).split(
        "Over the budget: every measured setting costs more than 3 points, or nearly all gain"
    )
    dear, plain = rest.split("For comparison")
    assert "SAP η = 90" in ranked
    assert "SAP-CTI η = 50" in dear
    assert "No defense 100 % 0.0" in plain
    assert "Untuned model" in plain


def test_what_may_hide_nothing_has_no_rank():
    unclear = [
        record("sap", {"eta": 90.0}, seed, 0.89 + 0.001 * seed, [leak(success)])
        for seed, success in enumerate((0.99, 0.5, 0.9))
    ]
    (question,) = answers(*unclear)
    assert table_of(question).startswith("Within 3 points, but without a clear effect SAP")


def test_a_row_says_what_else_its_setting_gives_away_with_an_icon():
    (question,) = answers(*MILD)
    assert '<span class="gives label">labels 100 %</span>' in question.rows(3.0)[0]


def test_a_row_leads_to_its_setting_and_to_its_attack():
    (question,) = answers(*MILD)
    row, one = question.rows(3.0)[0], question.entries[0].setting
    assert f'href="defenses/sap.html#{anchor(one)}"' in row
    assert 'href="attacks/eia-nn.html"' in row
    assert "✓" in row


def test_a_bar_has_its_interval_and_ticks_at_guessing_and_the_floor():
    floor = estimate(0.30)
    records = [
        one.model_copy(
            update={"leaks": [leak.model_copy(update={"floor": floor}) for leak in one.leaks]}
        )
        for one in (*baselines(), *MILD)
    ]
    (question,) = questions_of(results_table(records))
    one = question.entries[0]
    at = dict(
        re.findall(r"--(\w+):([\d.]+)%", question.bar(one.setting, one.leakage)),
    )
    at = {name: float(value) / 100 for name, value in at.items()}
    assert at["guess"] == 0 < at["floor"] < at["low"] <= at["value"] <= at["high"] < 1
    # On the bar, guessing, floor and success lie as they do in the success of the attack.
    expected = (0.801 - 0.30) / (0.801 - 0.05)
    assert (at["value"] - at["floor"]) / at["value"] == pytest.approx(expected, abs=0.01)
    assert "<s>" in question.rows(3.0)[0]
    (plain,) = answers(*MILD)
    assert plain.left == 0
    assert "<s>" not in plain.rows(3.0)[0]


def test_the_figure_of_the_paper_stands_beside_ours():
    (question,) = answers(*MILD)
    assert 'the paper says">–' in question.rows(3.0)[0]
    as_sst2 = [
        one.model_copy(update={"cell": one.cell.model_copy(update={"task": "sst2"})})
        for one in (*baselines(), *MILD)
    ]
    (question,) = questions_of(results_table(as_sst2))
    assert re.search(r"hides \d+ % η = 70; Table 3, roberta-large; here 20 %", table_of(question))


def test_only_defenses_made_for_the_goal_are_asked_for_and_ranked():
    found = answers(*MILD, *cells("dc", 0.89, 0.05, {"weight": 0.5}))
    assert [question.word for question in found] == ["texts", "labels"]
    assert [curve.defense for curve in found[0].curves] == ["sap"]
    assert "DC" not in table_of(found[0], 10.0)


def test_everything_that_one_may_hide_is_offered_measured_or_not():
    offered = words_to_hide(answers(*MILD))
    assert offered == [
        *("texts", "labels", "authors", "membership", "secrets", "the model", "texts and labels")
    ]


def test_what_is_not_certified_is_listed_with_its_reason_and_has_no_number():
    weak = [
        *cells("none", 0.9, 0.06, undefended=True),
        *cells("untuned", 0.5, 0.06, undefended=True),
    ]
    weak += [
        *cells("sap", 0.9, 0.06, {"eta": None}, undefended=True),
        *cells("sap", 0.9, 0.05, {"eta": 50.0}),
    ]
    (question,) = questions_of(results_table(weak))
    assert (
        "SAP is not certified: even without the defense, no attack has an advantage clearly above 0.2"
        in text_of(question.unranked)
    )
    assert "η = 50" not in table_of(question)
    assert sentence_of(question).startswith("Texts: not certified:")
    assert text_of(question.evidence(3.0)) == ""


def test_a_setting_that_learnt_nothing_has_no_rank_and_the_reason_stands_there():
    (question,) = answers(*cells("sap", 0.50, 0.10, {"eta": 50.0}))
    assert "not clearly above the untuned model" in text_of(question.unranked)
    assert "no defense has a cost that can be compared" in sentence_of(question)
    assert "η = 50" not in table_of(question, 10.0)


def test_the_verdict_of_a_curve_names_both_summaries():
    (curve,) = [
        c
        for c in curves(results_table([*baselines(), *MILD, *STRONG]))
        if c.defense == "sap" and c.goal == Goal.INVERSION
    ]
    words = words_of(curve)
    assert re.search(
        r"On reviews \(MiniLM\) it leaks 8\d % .*of texts for at most 3 points \(η = 90\)",
        words,
    )
    assert "Halving the leakage costs 7.0 of the 40.0 points gained (η = 50)." in words


def test_a_line_connects_only_settings_that_differ_in_the_knob():
    far = cells("sap", 0.86, 0.60, {"eta": 75.0})
    longer = cells("sap", 0.87, 0.70, {"eta": 75.0}, epochs=30)
    deeper = cells("sap", 0.85, 0.50, {"eta": 75.0}, cut=2)
    trained = cells("sap", 0.84, 0.40, {"eta": 75.0, "bottom": "trainable"})
    twins = [
        *cells("sap", 0.9, 0.99, {"eta": None}, undefended=True, cut=2),
        *cells("sap", 0.9, 0.99, {"eta": None, "bottom": "trainable"}, undefended=True),
    ]
    (question,) = answers(*MILD, *far, *longer, *deeper, *trained, *twins)
    (curve,) = question.curves
    assert len(curve.priced) == 5
    plot = str(plot_of(question))
    (line,) = re.findall(r'class="line"[^>]* d="([^"]+)"', plot)
    assert line.count("L") == 1  # from one point to another
    assert plot.count('class="mark"') == 5 + 1  # and one in the legend


def test_models_and_attributes_have_their_names():
    assert model_name("minilm") == "MiniLM"
    assert model_name("my-model") == "my-model"
    assert word_of(Goal.ATTRIBUTE, "age_group") == "authors (age group)"


def test_the_data_of_the_page_hold_every_answer_and_each_part_once():
    found = answers(*MILD, *STRONG)
    data = front_data(found)
    one = data["questions"]["texts"]["reviews"]["minilm"]
    assert list(one["budgets"]) == ["1", "3", "5", "10"]
    for budget, (sentence, evidence, rows) in one["budgets"].items():
        assert sentence == found[0].sentence(float(budget))
        assert data["parts"][evidence] == found[0].evidence(float(budget))
        assert [data["parts"][row] for row in rows] == found[0].rows(float(budget))
    assert len(set(data["parts"])) == len(data["parts"])


# In a browser


def test_without_a_script_the_default_answer_and_its_table_are_there(open_page, site):
    page = open_page(scripts=False)
    data = json.loads(
        (site / "data" / "front.js").read_text("utf-8").split("=", 1)[1].rstrip(";\n")
    )
    sentence, _, rows = data["questions"]["texts"]["reviews"]["minilm"]["budgets"]["3"]
    assert page.locator("#answer").inner_text() == sentence
    assert page.locator("#table tbody tr").count() == len(rows) > 2
    assert page.locator("#plot svg").count() > 0
    assert not page.locator("#question").is_visible()
    assert "Without JavaScript" in page.locator("noscript").inner_text()


def test_a_choice_changes_the_answer_by_keyboard_and_stands_in_the_address(open_page, expect):
    page = open_page()
    answer = page.locator("#answer")
    before = answer.inner_text()
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == "hide":
            break
    for name in ("hide", "on", "with", "lose"):
        expect(page.locator(f"select[name={name}]")).to_be_focused()
        assert page.evaluate("document.activeElement.labels[0].innerText").strip()
        page.keyboard.press("Tab")
    page.locator("select[name=lose]").focus()
    page.keyboard.press("End")
    page.wait_for_function("location.hash.includes('lose=10')")
    expect(page.locator("select[name=lose]")).to_have_value("10")
    expect(answer).to_contain_text("within 10\u00a0points")
    after = answer.inner_text()
    assert after != before
    again = open_page(f"index.html{page.evaluate('location.hash')}")
    expect(again.locator("#answer")).to_have_text(after)
    expect(answer).to_have_attribute("aria-live", "polite")


def test_every_question_can_be_asked(open_page, expect):
    page = open_page()
    hide, on, model = (page.locator(f"select[name={name}]") for name in ("hide", "on", "with"))
    answered = 0
    for goal in hide.locator("option").all_inner_texts():
        hide.select_option(goal)
        answer = page.locator("#answer")
        word = re.escape(f"{goal[0].upper()}{goal[1:]}: ")
        expect(answer).to_have_text(re.compile(f"^{word}"))
        for task in on.evaluate("box => [...box.options].map(one => one.value)"):
            on.select_option(task)
            expect(model.locator("option")).not_to_have_count(0)
            expect(page.locator("#table tbody tr")).not_to_have_count(0)
            answered += 1
        if on.is_disabled():
            expect(answer).to_contain_text("no defense made for it was measured")
            expect(page.locator("#scroll")).to_be_hidden()
    assert answered > 1


def test_what_the_address_asks_and_nobody_measured_is_named_and_the_rest_answered(
    open_page, expect
):
    page = open_page("index.html#hide=nonsense&on=nowhere&lose=-1")
    unknown = page.locator("#unknown")
    expect(page.locator("select[name=hide]")).to_have_value("texts")
    expect(unknown).to_contain_text("Not measured here: nonsense, nowhere, -1.")
    expect(page.locator("#answer")).to_contain_text("Texts: ")
    # The words of other pages and of earlier versions are understood.
    page = open_page("index.html#hide=inputs&lose=10")
    expect(page.locator("select[name=hide]")).to_have_value("texts")
    expect(page.locator("#unknown")).to_be_hidden()
    # Also where the address changes while the page is open.
    page.evaluate("location.hash = 'hide=labels'")
    expect(page.locator("select[name=hide]")).to_have_value("labels")


def test_a_point_of_the_curve_says_what_it_is_and_leads_to_its_setting(open_page, expect):
    page = open_page()
    point = page.locator("#plot a").last
    point.focus()
    words = re.compile(r"SAP.*: \d+ %.* still readable, .* points lost")
    expect(page.locator("#point")).to_have_text(words)
    page.keyboard.press("Enter")
    page.wait_for_url("**/defenses/sap.html#r*")
    expect(page.locator("tr:target")).to_have_count(1)


def test_the_picture_is_one_click_away(open_page, expect):
    page = open_page()
    picture = page.locator("#threats img")
    expect(picture).to_be_hidden()
    page.get_by_text("Show the picture").click()
    expect(picture).to_be_visible()
    page.wait_for_function("document.querySelector('#threats img').naturalWidth > 0")


def test_the_picture_is_that_of_the_documentation(site):
    assert (site / "assets" / "threats.svg").read_bytes() == (
        ROOT / "docs" / "threats.svg"
    ).read_bytes()


def test_the_front_page_with_all_that_it_loads_is_small(site):
    assert sum((site / path).stat().st_size for path in FRONT) < HEAVIEST
    page = (site / "index.html").read_text("utf-8")
    loads = re.findall(r'<(?:script src|link rel="stylesheet" href)="([^"]+)"', page)
    assert {*loads} == {*FRONT} - {"index.html"}


@pytest.mark.parametrize("width", [390, 768, 1440])
def test_the_table_fits_the_screen(open_page, width):
    page = open_page(width=width)
    cut = "box => box.scrollWidth > box.clientWidth + 1"
    assert not page.locator("#scroll").evaluate(cut)
