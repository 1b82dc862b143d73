"""What a reader chooses, in a real browser: it stands in the address, and a link shows the same."""

from __future__ import annotations

import csv
import io
import re
from urllib.parse import parse_qs, urlsplit

import pytest

BOARD = "#board-front"
REVIEWS = "boards.html?task=reviews&setup=&goal=inversion"


def shown(page, name, table=BOARD):
    """The entries of a column in the rows that are shown."""
    return page.evaluate(
        """([id, name]) => {
          const table = document.querySelector(`${id} table`);
          const at = [...table.tHead.rows[0].cells].findIndex(c => c.textContent.trim() === name);
          return [...table.tBodies[0].rows].filter(r => !r.hidden).map(r => r.cells[at].textContent.trim());
        }""",
        [table, name],
    )


def asked(page):
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def choose(page, name, value):
    page.locator(f"form.filters[data-name=''] select[data-column={name}]").select_option(value)


def test_a_choice_stands_in_the_address_and_the_address_shows_the_choice(open_page):
    page = open_page("boards.html")
    assert set(shown(page, "task")) == {"sst2"}  # given
    assert asked(page) == {}
    page = open_page(REVIEWS)
    assert set(shown(page, "seeds")) == {"1", "3"}
    choose(page, "seeds", "3")
    assert set(shown(page, "seeds")) == {"3"}
    page.locator(f"{BOARD} th", has_text="cost").get_by_role("button").click()
    page.locator(f"{BOARD} input[type=search]").fill("sap")
    page.wait_for_url(re.compile("search=sap"))  # the driver learns of a new address a moment later
    told = {"board-front.sort": "cost:rising", "board-front.search": "sap"}
    assert asked(page).items() >= told.items()
    before = shown(page, "cost")
    other = open_page(f"boards.html?{urlsplit(page.url).query}")
    assert shown(other, "cost") == before != []
    assert set(shown(other, "defense")) == {"sap"}
    assert set(shown(other, "seeds")) == {"3"}
    assert other.locator(f"{BOARD} th[aria-sort=ascending]").inner_text().startswith("cost")


def test_an_address_that_asks_for_what_is_not_there_shows_everything(open_page):
    every = "model=&setup=&goal=&board-front.sort=nothing:rising&seeds=%3Cb%3E"
    page = open_page(f"boards.html?task=unknown&{every}")
    assert len(shown(page, "goal")) == page.locator(f"{BOARD} tbody tr").count()


def test_columns_that_are_left_out_stay_out(open_page):
    page = open_page(REVIEWS)
    page.locator(f"{BOARD} summary").click()
    page.locator(f"{BOARD} .columns label", has_text="flags").locator("input").uncheck()
    assert not page.locator(f"{BOARD} th", has_text="flags").is_visible()
    assert asked(page)["board-front.without"] == "flags"
    again = open_page(f"boards.html?{urlsplit(page.url).query}")
    assert not again.locator(f"{BOARD} th", has_text="flags").is_visible()
    assert again.locator(f"{BOARD} th", has_text="privacy").is_visible()


def test_what_is_chosen_for_the_page_stands_in_no_row_but_in_what_is_taken_along(open_page):
    page = open_page(f"{REVIEWS}&model=")
    seen = page.locator(f"{BOARD} th:visible").all_inner_texts()
    assert {"model", "setup"} <= set(seen)
    assert not {"task", "goal"} & set(seen)
    with page.expect_download() as saved:
        page.locator(f"{BOARD} button.csv").click()
    with open(saved.value.path(), encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["task"], row["goal"]) for row in rows} == {("reviews", "inversion")}
    choose(page, "goal", "")
    assert page.locator(f"{BOARD} th", has_text="goal").is_visible()


def test_a_table_can_be_taken_along_as_it_is_shown(open_page):
    page = open_page(f"{REVIEWS}&board-front.without=flags")
    with page.expect_download() as saved:
        page.locator(f"{BOARD} button.csv").click()
    assert saved.value.suggested_filename == "board-front.csv"
    with open(saved.value.path(), encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(io.StringIO(file.read())))
    assert [row["defense"] for row in rows] == shown(page, "defense")
    assert {float(row["privacy"]) <= 1 for row in rows if row["privacy"][0].isdigit()} == {True}
    assert any(row["privacy: more"].startswith("[") for row in rows)
    assert "flags" not in rows[0]
    assert {row["goal"] for row in rows} == {"inversion"}


def test_a_link_to_a_table_holds_what_was_chosen(open_page):
    page = open_page("boards.html?goal=label", width=1200)
    page.locator(f"{BOARD} a.anchor").click()
    page.wait_for_url("**/boards.html?goal=label#board-front")


def test_the_first_column_of_a_long_table_stays_in_sight(open_page):
    page = open_page(REVIEWS, width=700)
    place = page.locator(f"{BOARD} .scroll")
    place.evaluate("one => { one.scrollLeft = 300; }")
    first = page.locator(f"{BOARD} tbody tr:not([hidden]) td").first
    assert first.bounding_box()["x"] == pytest.approx(place.bounding_box()["x"], abs=2)


def test_on_a_phone_rows_are_cards_that_say_what_each_entry_is(open_page):
    page = open_page(REVIEWS, width=390)
    row = page.locator(f"{BOARD} tbody tr:not([hidden])").first
    assert row.evaluate("one => getComputedStyle(one).display") == "block"
    label = row.locator("td").nth(3).evaluate("one => getComputedStyle(one, '::before').content")
    assert label.strip('"') == page.locator(f"{BOARD} th").nth(3).text_content().strip()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator(f"{BOARD} select.by").select_option("cost:falling")
    costs = [float(text.split("[")[0]) for text in shown(page, "cost")]
    assert costs == sorted(costs, reverse=True)


def test_any_two_defenses_stand_beside_each_other(open_page):
    page = open_page("compare.html")
    page.locator("select[name=this]").select_option("none")
    page.locator("select[name=that]").select_option("sap")
    heads = page.locator("#pairs thead th:visible").all_inner_texts()
    assert heads[0] == "shown"
    assert set(heads[1:]) == {"none", "sap"}
    # Those that are not shown take nothing of the width.
    widths = [box.bounding_box()["width"] for box in page.locator("#pairs thead th:visible").all()]
    assert sum(widths) == pytest.approx(page.locator("#pairs").bounding_box()["width"], abs=2)
    other = open_page("compare.html?this=none&that=none")
    assert other.locator("#pairs thead th:visible").all_inner_texts() == ["shown", "none"]
    assert open_page("compare.html?this=nobody").locator("#pairs thead th:visible").count() == 3


def test_the_first_screen_holds_the_whole_answer(open_page):
    page = open_page(width=1440)
    for part in (".verdicts", ".scatter", ".more"):
        box = page.locator(part).bounding_box()
        assert box["y"] + box["height"] <= 900, part
