"""The first answer: what it says, by which rule, and that it fits on one screen."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest
from leakboard.leaderboards.site.content import Content
from leakboard.leaderboards.site.front import NOTHING, answer, first_of, hides
from leakboard.leaderboards.site.links import Links, slug
from leakboard.leaderboards.site.scatter import Dot, scatter
from records import leak, record, skipped
from site_records import EVIL, kept

from leakboard.leaderboards.findings import Finding, headlines
from leakboard.leaderboards.site.build import publish
from leakboard.leaderboards.site.collection import collect
from leakboard.leaderboards.tables import Look, Verdict

HEAVIEST = 1_000_000
"""Bytes of the front page with all that it loads."""


def text_of(page):
    return unescape(re.sub(r"<[^>]+>", "", page))


@pytest.fixture
def built(tmp_path, monkeypatch):
    """Builds a site of some records and gives its pages as text."""
    monkeypatch.setattr("leakboard.leaderboards.site.pictures.of_panel", lambda *_: [])

    def pages(*records):
        to = tmp_path / "site"
        publish([kept(tmp_path / "records", records)], to)
        return {
            path.relative_to(to).as_posix(): path.read_text("utf-8") for path in to.rglob("*.html")
        }

    return pages


def test_the_front_page_says_in_words_what_the_matrix_of_its_task_shows(site, sources):
    page = (site / "index.html").read_text("utf-8")
    shown = Content(collect(sources))
    told = answer(first_of(shown.matrices), Links())
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", page, re.S)
    every = [line for lines in told.groups.values() for line in lines]
    assert len(rows) == len(every) > 1
    for row, line in zip(rows, every, strict=True):
        assert line.name in text_of(row)
        assert re.findall(r'<td class="([a-z-]+)" title', row)[:-1] == [w.slug for w in line.words]
        assert row.count("</a>") == 1 + len(line.words)
    assert '<svg class="scatter"' in page


def test_sst2_stands_first_where_it_is_there():
    class Some:
        def __init__(self, task):
            self.comparison = type("Of", (), {"task": task})

    most, ours = Some("reviews"), Some("sst2")
    assert first_of([most, ours]) is ours
    assert first_of([most]) is most
    assert first_of([]) is None


def test_the_first_findings_are_chosen_by_a_rule():
    def one(rule, claim, task="sst2", model="minilm"):
        return Finding(rule, claim, task, model, (), "m", 0.5, (0.4, 0.6), 9, 3, "a", ())

    every = [
        one("overview", "inputs"),
        one("overview", "elsewhere", task="mrpc"),
        one("overview", "labels"),
        one("text", "what is written", task="dialogues", model="small"),
        one("elsewhere", "too long to be read in passing" * 11),
        one("elsewhere", "first"),
        one("elsewhere", "second"),
        one("authors", "theirs"),
        one("authors", "of another model", model="large"),
        one("servers", "who"),
        one("audits", "too many"),
    ]
    chosen = [told.claim for told in headlines(every, "sst2", "minilm")]
    assert chosen == ["inputs", "labels", "what is written", "theirs", "first"]
    assert [told.rule for told in headlines(every, "sst2", "none")] == ["text"]


def test_a_defense_is_grouped_by_what_its_customer_hides_with_it():
    assert hides("sap") == hides("dpnr") == "inputs"
    assert hides("p3eft") == hides("frozen") == "labels"
    assert hides("dpsgd") == hides("redacted") == "the training set"
    assert hides("offsite-tuning") == "the vendor's model"
    assert hides("unknown here") == "several things"
    assert hides("none", made=False) == NOTHING


def test_the_front_page_is_light_and_loads_no_library_for_figures(site):
    page = (site / "index.html").read_text("utf-8")
    loaded = {site / path for path in re.findall(r'(?:src|href)="(assets/[^"]+)"', page)}
    assert {path.name for path in loaded} == {"site.js", "style.css"}
    assert sum(path.stat().st_size for path in loaded) + len(page.encode()) < HEAVIEST


def test_one_record_is_no_comparison_and_the_front_page_says_so(built):
    pages = built(record(leaks=[leak()]))
    told = " ".join(text_of(pages["index.html"]).split())
    assert "Nothing can be compared yet" in told
    assert "1 record stands on the page of records" in told
    assert "<svg" not in pages["index.html"]
    assert "Nothing can be compared here" in pages["tasks/reviews.html"]


def test_where_every_attack_was_skipped_pages_say_so(built):
    pages = built(
        record("none", leaks=[skipped(channel=None)], undefended=True),
        record("sap", {"eta": 50.0}, leaks=[skipped(channel=None)]),
    )
    assert "No attack found anything here" in pages["tasks/reviews.html"]
    assert "plotly" not in pages["tasks/reviews.html"]
    assert '<svg class="scatter"' not in pages["index.html"]


def test_a_task_that_nobody_knows_and_names_with_markup_have_pages(built):
    pages = built(
        *(record(name, {}, 0, 0.9, task=EVIL, undefended=name == "none") for name in ("none", EVIL))
    )
    for path in ("index.html", f"tasks/{slug(EVIL)}.html", f"defenses/{slug(EVIL)}.html"):
        assert "hacked=1</script>" not in pages[path]
        assert EVIL in text_of(pages[path])


LOOK = Look("#0072b2", "o", None, {})


def dot(name, leak, cost):
    return Dot(name, leak, cost, LOOK, "", name)


def boxes(drawn):
    """Left, top, right and bottom of each name in a picture."""
    found = re.findall(r'<text class="name" x="([\d.]+)" y="([\d.]+)">(.*?)</text>', drawn)
    return [(float(x), float(y) - 10, float(x) + 6.1 * len(n), float(y) + 3) for x, y, n in found]


def test_no_name_in_the_picture_covers_another_one_or_leaves_it():
    names = ["sap", "sap-cti", "p3eft", "dc", "pslf", "frozen", "randomised-response", "none"]
    drawn = scatter([dot(name, 0.97 + 0.004 * n, 0.3 * n) for n, name in enumerate(names)], "all")
    placed = boxes(drawn)
    assert len(placed) >= 6
    for n, (left, top, right, bottom) in enumerate(placed):
        assert left >= 0
        assert right <= 440.01
        for other in placed[n + 1 :]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top


def test_the_picture_holds_what_costs_little_and_what_costs_all():
    drawn = scatter([dot("cheap", 1.0, -0.4), dot("dear", 0.0, 30.1)], "both")
    places = [
        (float(x), float(y)) for x, y in re.findall(r"translate\((-?[\d.]+) (-?[\d.]+)\)", drawn)
    ]
    cheap, dear = [place for place in places if place[0] > 20]  # one is that of an axis
    assert cheap[0] > dear[0]
    assert cheap[1] > dear[1] > 0
    assert scatter([], "none") == ""


def test_what_leaks_at_least_so_much_has_a_hollow_sign():
    dots = [dot("sap", 0.4, 1.0), replace(dot("dpnr", 0.1, 1.0), bound=True)]
    drawn = scatter(dots, "both")
    assert drawn.count('class="bound"') == 1
    assert drawn.index("<title>sap") < drawn.index('class="bound"') < drawn.index("<title>dpnr")


def test_what_is_not_shown_has_no_dot_and_is_named(built):
    pages = built(
        *[record("none", {}, s, 0.9, [leak(0.99)], undefended=True) for s in (0, 1)],
        *[record("sap", {"eta": 50.0}, s, 0.8, [leak(0.04, "eia-map")]) for s in (0, 1)],
        *[record("dc", {"weight": 0.5}, s, 0.8, [leak(0.99)]) for s in (0, 1)],
    )
    page = pages["index.html"]
    # Nobody looked for what dc hides.
    assert re.search(r"Not shown: (sap, dc|dc, sap)\.", page)
    assert Verdict.NOT_SHOWN in page
    assert page.count('<text class="name"') == 1
