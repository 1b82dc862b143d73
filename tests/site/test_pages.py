"""The pages: every link leads somewhere, and nothing hostile in a record becomes markup."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from time import process_time
from urllib.parse import unquote

import pytest
from paths import ROOT
from records import leak, record
from site_records import (
    EVIL,
    LINK,
    PATHS,
    hostile_records,
    kept,
    many_records,
    plain_records,
)

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.records.store import MANIFEST
from leakboard.bench.submissions.collection import collect
from leakboard.defenses.none import NoDefense
from leakboard.leaderboards.site.build import publish
from leakboard.leaderboards.site.markup import prose, slug
from leakboard.leaderboards.site.methods import code_of
from leakboard.leaderboards.site.records_data import records_data, script


class Links(HTMLParser):
    """What a page links to and the ids that it has."""

    def __init__(self, text):
        super().__init__()
        self.links, self.ids = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.links += [found[name] for name in ("href", "src") if found.get(name)]
        self.ids += [found["id"]] if "id" in found else []


def test_every_link_leads_to_a_file_and_a_place_of_the_site(site, sources):
    keys = set(collect(sources).records)
    pages = {path: Links(path.read_text("utf-8")) for path in site.rglob("*.html")}
    assert len(pages) > 20
    for path, page in pages.items():
        assert len(page.ids) == len(set(page.ids)), f"{path}: an id stands twice"
        for link in page.links:
            if link.startswith(("https://", "data:")):
                continue
            file, _, anchor = link.partition("#")
            target = (path.parent / unquote(file)).resolve() if file else path
            assert target.is_file(), f"{path}: {link}"
            assert target.is_relative_to(site), f"{path}: {link} leaves the site"
            ids = {*pages[target].ids} if anchor else set()
            known = ids | keys if target.name == "records.html" else ids
            assert not anchor or anchor in known, f"{path}: {link}"


def test_nothing_is_loaded_from_elsewhere(site):
    for path in site.rglob("*.html"):
        text = path.read_text("utf-8")
        assert not re.search(r'(src|<link[^>]* href)="(?!data:)[a-z]*:?//', text), path


def test_pages_bear_no_names_from_records(site):
    assert slug("sap-cti") == "sap-cti"
    for name in (EVIL, PATHS, "", "Sap", "a/b", "..", "a" * 200):
        assert slug(name).startswith("x-")
    names = [path.name for path in site.rglob("*")]
    assert not any("escaped" in name or "script" in name for name in names)
    assert f"{slug(PATHS)}.html" in names


def test_names_in_backticks_are_code_and_nothing_else_is_markup():
    assert prose("as `eia-nn` does <b>&") == "as <code>eia-nn</code> does &lt;b&gt;&amp;"
    assert prose("one ` alone") == "one ` alone"


def test_what_was_said_with_a_submission_stands_on_the_page_of_its_method_alone(site, other):
    for name in (EVIL, PATHS, "none"):
        text = (site / "defenses" / f"{slug(name)}.html").read_text("utf-8")
        assert text.count(f' <a href="{LINK}" rel="noopener nofollow">{LINK}</a>') == 1
        assert "note &lt;/script&gt;" in text
    assert "Submitted as" not in (site / "defenses" / "sap.html").read_text("utf-8")
    (other[0] / MANIFEST).write_text('{"method": 1}')
    with pytest.raises(LeakboardError, match=rf"{MANIFEST}: .*method"):
        publish(other, other[0] / "site")


def test_the_data_of_records_hold_each_of_them_with_its_leaks(sources):
    collection = collect(sources)
    data = records_data(collection)
    words = data["words"]
    assert len(words) == len(set(words))
    for (key, folder, task, *_, leaks, _), one in zip(
        data["records"], collection.records.values(), strict=True
    ):
        assert (key, words[task]) == (one.key, one.cell.task)
        assert f"{words[folder]}/{key}.json" == collection.files[key]
        assert [words[leak[0]] for leak in leaks] == [leak.attack.name for leak in one.leaks]


def test_data_in_a_script_end_no_line_of_it():
    text = script("name", {"a": "\u2028</script>"})
    assert text.count("\n") == 1
    assert "\u2028" not in text
    assert json.loads(text.removeprefix("window.name=").rstrip(";\n")) == {"a": "\u2028</script>"}


def test_findings_begin_with_at_most_ten_and_lead_to_their_records(site):
    page = (site / "findings.html").read_text("utf-8")
    assert re.findall(r"records\.html#([0-9a-f]{16})", page)
    headlines = page.partition('id="headlines"')[2].partition("</section>")[0]
    assert 0 < headlines.count("<li>") <= 10


def test_the_table_of_results_comes_with_the_site(site):
    lines = (site / "data" / "results.csv").read_text("utf-8").splitlines()
    assert "leakage" in lines[0].split(",")
    assert len(lines) > 5


FEW = {
    "one record": [record("none", undefended=True)],
    "only failures": [record("sap", {"eta": 9.0}, 0, None, [], status="failed", reason="no")],
    "only untuned": [record("untuned", leaks=[], undefended=True)],
}


@pytest.mark.parametrize("name", FEW)
def test_records_that_answer_no_question_still_make_a_site(tmp_path, name):
    publish([kept(tmp_path / "few", FEW[name])], tmp_path / "site")
    page = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert "These records answer no question yet." in page
    assert "front.js" not in page


def test_where_nothing_is_certified_the_page_says_so_and_opens_the_reasons(tmp_path):
    weak = [
        record(name, params, seed, utility, [leak(0.06)], undefended=name != "sap" or not params)
        for seed in range(3)
        for name, params, utility in (
            ("none", {}, 0.9),
            ("untuned", {}, 0.5),
            ("sap", {"eta": None}, 0.9),
            ("sap", {"eta": 50.0}, 0.8),
        )
    ]
    publish([kept(tmp_path / "weak", weak)], tmp_path / "site")
    page = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert ">Texts: not certified: " in page
    assert '<details id="unranked" open>' in page


def test_the_settings_of_a_method_begin_with_the_one_that_leaks_most(tmp_path):
    etas = (None, 60.0, 10.0, 50.0, 20.0, 40.0, 30.0)
    records = [
        record("sap", {"eta": eta}, seed, 0.9, [leak((eta or 99) / 100)], undefended=eta is None)
        for eta in etas
        for seed in (0, 1)
    ]
    publish([kept(tmp_path / "some", records)], tmp_path / "site")
    page = (tmp_path / "site" / "defenses" / "sap.html").read_text("utf-8")
    assert re.findall(r'scope="row">η = (\w+)<', page) == [
        "none",
        "60",
        "50",
        "40",
        "30",
        "20",
        "10",
    ]
    assert "MiniLM, cut 0" in page


def test_the_front_page_says_of_each_defense_what_it_leaks_and_leads_to_it(site):
    page = (site / "index.html").read_text("utf-8")
    assert 'href="#defenses"' in page
    found = page.partition('id="defenses"')[2].partition("</nav>")[0]
    assert re.search(
        r'<a href="defenses/sap.html">SAP</a> <small>texts \d+ % for 1\d.\d points</small>', found
    )


def test_the_front_page_leaves_out_defenses_that_were_measured_only_without_protection(tmp_path):
    records = [
        *(record("none", {}, seed, undefended=True) for seed in (0, 1)),
        *(record("sap", {"eta": 50.0}, seed) for seed in (0, 1)),
        *(record("sap-cti", {"eta": None}, seed, undefended=True) for seed in (0, 1)),
    ]
    publish([kept(tmp_path / "twins", records)], tmp_path / "site")
    page = (tmp_path / "site" / "index.html").read_text("utf-8")
    found = page.partition('id="defenses"')[2].partition("</nav>")[0]
    assert "defenses/sap.html" in found
    assert "defenses/sap-cti.html" not in found
    assert (tmp_path / "site" / "defenses" / "sap-cti.html").is_file()


def test_numbers_keep_their_names_and_units_on_a_line():
    assert prose("at η = 75, 3 points, 9 %") == "at η\u00a0=\u00a075, 3\u00a0points, 9\u00a0%"


def test_a_method_leads_to_its_code_and_the_code_of_others_is_not_published(site):
    text = (site / "code" / "defense-sap.txt").read_text("utf-8")
    assert text == (ROOT / "defenses" / "sap.py").read_text("utf-8")
    assert "../code/defense-sap.txt" in (site / "defenses" / "sap.html").read_text("utf-8")
    foreign = type("Foreign", (NoDefense,), {"__module__": "their.package"})
    assert code_of(foreign) == ""


@pytest.mark.slow
def test_six_thousand_records_make_a_site_in_less_than_a_minute_of_one_core(tmp_path, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _: None)  # the disk would take most of the time
    folder = kept(tmp_path / "many", many_records(6000))
    assert len(list(folder.glob("*.json"))) > 6000
    start = process_time()
    publish([folder], tmp_path / "site")
    assert process_time() - start < 60
    assert sum(path.stat().st_size for path in (tmp_path / "site").rglob("*.*")) < 25e6


# In a browser


def test_no_page_errs_runs_foreign_script_or_is_wider_than_a_phone(open_page, expect, site):
    page = open_page(width=390)
    keys = [one.key for one in hostile_records()]
    paths = [path.relative_to(site).as_posix() for path in sorted(site.rglob("*.html"))]
    for path in [*paths, *(f"records.html#{key}" for key in keys)]:
        page.goto(f"file://{site}/{path}")
        if "#" in path:
            expect(page.locator("#record h2")).to_contain_text(path.partition("#")[2])
        assert page.evaluate("window.hacked") is None, path
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
        assert page.locator("h1").count() == 1


@pytest.mark.parametrize("width", [768, 1024])
def test_the_list_of_records_does_not_scroll_sideways(open_page, site, width):
    page = open_page(width=width)
    page.goto(f"file://{site}/records.html")
    page.locator("#records tbody tr").first.wait_for()
    assert page.evaluate(
        "[...document.querySelectorAll('.scroll')].every(e => e.scrollWidth <= e.clientWidth)"
    )


def test_hostile_text_is_shown_as_it_is(open_page, expect):
    page = open_page(f"defenses/{slug(EVIL)}.html")
    expect(page.locator("h1")).to_have_text(EVIL)
    page = open_page(f"records.html#{hostile_records()[0].key}")
    expect(page.locator("#record")).to_contain_text(EVIL)
    expect(page.locator("#record img")).to_have_count(0)
    page.locator("#record a", has_text="window.hacked").first.click()
    page.wait_for_url("**/defenses/x-*.html")


def test_a_record_says_how_it_is_run_again_and_where_its_file_is(open_page, expect):
    one = plain_records()[0]
    page = open_page(f"records.html#{one.key}")
    shown = page.locator("#record")
    expect(shown).to_contain_text(f"leakboard run --record {one.key}")
    expect(shown).to_contain_text(f"plain/{one.key}.json")
    expect(shown.locator("tbody tr")).to_have_count(len(one.leaks))


def test_filters_keep_the_records_that_fit_all_of_them(open_page, expect):
    page = open_page("records.html")
    rows, count = page.locator("#records tbody tr"), page.locator("#filters output")
    total = rows.count()
    by_sap = sum(
        "sap" in row for row in page.locator("#records tbody td:nth-child(2)").all_inner_texts()
    )
    assert 1 < by_sap < total
    page.locator("select[name=defense]").select_option("sap")
    expect(count).to_have_text(f"{by_sap} of {total}")
    expect(rows).to_have_count(by_sap)
    page.locator("input[name=search]").fill("eta = 25")
    expect(rows).to_have_count(1)
    expect(count).to_have_text(f"1 of {total}")
    page.locator("input[name=search]").fill("")
    page.locator("select[name=defense]").select_option("")
    page.locator("select[name=status]").select_option("failed")
    expect(rows.first).to_contain_text("failed")
    rows.first.locator("a").click()
    expect(page.locator("#record")).to_contain_text("failed")


def test_the_search_keeps_the_findings_that_hold_all_words(open_page, expect):
    page = open_page("findings.html")
    items, box = page.locator("#all li"), page.locator("input[name=words]")
    total = items.count()
    words = items.first.inner_text().split()[:2]
    box.fill(" ".join(words).lower())
    visible = page.locator("#all li:visible")
    expect(page.locator("#headlines")).to_be_hidden()
    assert 0 < visible.count() <= total
    for word in words:
        expect(visible.first).to_contain_text(word)
    box.fill("no finding holds this")
    expect(visible).to_have_count(0)
    expect(page.locator("#search output")).to_have_text(f"0 of {total}")
    box.fill("")
    expect(visible).to_have_count(total)


def test_without_a_script_the_page_of_records_says_where_the_results_are(open_page, expect):
    page = open_page("records.html", scripts=False)
    shown = page.locator("main")
    expect(shown).to_contain_text("This list needs JavaScript", use_inner_text=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_until_the_reader_chooses(open_page, expect, site, scheme):
    page = open_page(scheme=scheme)
    body = page.locator("body")
    colours = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}
    other = {"light": "dark", "dark": "light"}[scheme]
    expect(body).to_have_css("background-color", colours[scheme])
    page.locator("#theme").click()
    expect(body).to_have_css("background-color", colours[other])
    page.goto(f"file://{site / 'records.html'}")
    expect(body).to_have_css("background-color", colours[other])


def test_the_keyboard_finds_the_content_first_and_sees_where_it_is(open_page, expect):
    page = open_page("records.html")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_css("outline-style", "solid")
    tables = page.locator("table")
    assert tables.count() == page.locator("table > caption").count() > 0
    assert page.locator("thead th:not([scope])").count() == 0
