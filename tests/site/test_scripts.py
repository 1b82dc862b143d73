"""The site in a real browser."""

from __future__ import annotations

import pytest
from leakboard.leaderboards.site.links import slug
from site_records import EVIL, inversion, plain_records


def drawn(page):
    page.wait_for_function(
        "[...document.querySelectorAll('.plot')].every(p => p.querySelector('.plot-container'))"
    )


def column(page, name):
    """The shown entries of a column of the table of settings."""
    return page.evaluate(
        """name => {
          const table = document.querySelector('#settings table');
          const at = [...table.tHead.rows[0].cells].findIndex(c => c.textContent.trim() === name);
          return [...table.tBodies[0].rows].filter(r => !r.hidden)
            .map(r => r.cells[at].innerText.split('\\n')[0].trim());
        }""",
        name,
    )


def test_no_page_errs_runs_foreign_script_or_is_wider_than_a_phone(open_page, site):
    page = open_page(width=390)
    for path in sorted(site.rglob("*.html")):
        page.goto(f"file://{path}")
        drawn(page)
        assert page.evaluate("window.hacked") is None, path
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
        assert page.locator("h1").count() == 1
    assert "49" not in page.title()


def test_cards_on_a_phone_flow_in_the_page(open_page, site):
    one = next(record.key for record in plain_records())
    for path in (
        "attacks/eia-nn.html",
        f"records/{one}.html",
        "tasks/reviews.html",
        "records.html",
    ):
        page = open_page(path, width=390)
        boxes = page.locator(".scroll:has(.cards)")
        assert boxes.count() == page.locator(".scroll").count() > 0, path
        cut = "all => all.filter(one => one.scrollHeight > one.clientHeight + 1 || one.scrollWidth > one.clientWidth + 1)"
        assert boxes.evaluate_all(f"{cut}.length") == 0, path


def test_a_phone_shows_the_first_cards_and_all_where_asked(open_page):
    page = open_page("records.html", width=390)
    cards, more = page.locator("#records tbody tr:visible"), page.locator("#records .rest")
    total = page.locator("#records tbody tr").count()
    assert cards.count() == 6 < total
    page.locator("#records input[type=search]").fill("failed")
    assert 0 < cards.count() < 6
    assert not more.is_visible()
    page.locator("#records input[type=search]").fill("")
    more.get_by_text(f"Show all {total}").click()
    assert cards.count() == total
    assert not more.is_visible()
    wide = open_page("records.html")
    assert wide.locator("#records tbody tr:visible").count() == total
    assert not wide.locator("#records .rest").is_visible()


def test_hostile_text_is_shown_as_it_is(open_page, site):
    page = open_page(f"defenses/{slug(EVIL)}.html")
    assert page.locator("h1").inner_text().strip() == EVIL
    page = open_page(f"tasks/{slug(EVIL)}.html")
    drawn(page)
    names = page.locator(".legend button").all_inner_texts()
    assert any("<img src=x" in name for name in names)
    assert page.locator(".plot img").count() == 0


def test_a_column_sorts_up_and_down_with_missing_numbers_last(open_page):
    page = open_page("tasks/reviews.html")
    head = page.locator("#settings th", has_text="EP, paper's")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    shown = column(page, "EP, paper's")
    numbers = [float(text) for text in shown if text != "–"]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) > 2
    assert shown[len(numbers) :] == ["–"] * (len(shown) - len(numbers)) != []
    head.get_by_role("button").press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    shown = column(page, "EP, paper's")
    assert [float(text) for text in shown[: len(numbers)]] == sorted(numbers, reverse=True)
    assert page.locator("#settings th[aria-sort]").count() == 1


def test_filters_keep_the_rows_that_fit_all_of_them(open_page):
    page = open_page("tasks/reviews.html")
    total = len(column(page, "goal"))
    page.locator("#settings select[data-column=goal]").select_option("label")
    assert set(column(page, "goal")) == {"label"}
    page.locator("#settings input[type=search]").fill("η = 50")
    assert set(column(page, "setting")) == {"η = 50"}
    assert page.locator("#settings output").inner_text() == f"1 of {total}"


def test_a_point_tells_its_numbers_and_leads_to_its_record(open_page):
    page = open_page("tasks/reviews.html")
    drawn(page)
    plot = inversion(page)
    plot.scroll_into_view_if_needed()
    at = plot.evaluate("p => p.data.findIndex(trace => trace.name === 'sap')")
    x, y = plot.evaluate(
        """(p, at) => {
          const l = p._fullLayout, t = p.data[at], box = p.getBoundingClientRect();
          return [box.x + l.xaxis._offset + l.xaxis.l2p(t.x[2]), box.y + l.yaxis._offset + l.yaxis.l2p(t.y[2])];
        }""",
        at,
    )
    page.mouse.move(x - 3, y)
    page.mouse.move(x, y)
    plot.locator(".hovertext").first.wait_for()
    told = plot.locator(".hovertext").inner_html()
    assert "empirical privacy" in told
    assert "3 seeds" in told or "one seed" in told
    page.mouse.click(x, y)
    page.wait_for_url("**/records/*.html")
    assert "sap" in page.locator(".lead").inner_text()


def test_a_curve_can_be_hidden_and_stays_hidden_in_the_other_theme(open_page):
    page = open_page("tasks/reviews.html")
    drawn(page)
    plot = inversion(page)
    key = inversion(page, "legend").get_by_role("button", name="sap").first
    key.click()
    assert key.get_attribute("aria-pressed") == "false"
    lines = plot.evaluate("p => p.querySelectorAll('.scatterlayer .trace').length")
    page.get_by_role("button", name="Dark theme").click()
    page.wait_for_timeout(200)
    assert plot.evaluate("p => p.querySelectorAll('.scatterlayer .trace').length") == lines
    assert lines < plot.evaluate("p => p.data.length")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_until_the_reader_chooses(open_page, site, scheme):
    page = open_page(scheme=scheme)
    paper = "getComputedStyle(document.body).backgroundColor"
    colours = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}
    other = {"light": "dark", "dark": "light"}[scheme]
    assert page.evaluate(paper) == colours[scheme]
    page.locator("#theme").click()
    assert page.evaluate(paper) == colours[other]
    page.goto(f"file://{site / 'records.html'}")
    assert page.evaluate(paper) == colours[other]


def test_the_keyboard_finds_the_content_first_and_sees_where_it_is(open_page):
    page = open_page("records.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    tables = page.locator("table")
    assert tables.count() == page.locator("table > caption").count() > 0
    assert page.locator("thead th:not([scope])").count() == 0


def test_without_script_the_numbers_are_there(browser, site):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"file://{site / 'tasks/reviews.html'}")
    assert "η = 50" in page.locator("#settings").inner_text()
    assert not page.locator("#theme").is_visible()
    context.close()


def test_bibtex_is_copied_or_selected(open_page):
    page = open_page("about.html")
    page.get_by_role("button", name="Copy").click()
    page.wait_for_function("document.querySelector('.copy').textContent !== 'Copy'")
    assert "@software{leakboard" in page.evaluate("getSelection().toString()")
