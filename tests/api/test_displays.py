"""What a notebook shows of results: small, and with every name from records as text."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest
from experiments import compared
from records import leak

import leakboard as lb
from leakboard.bench.conformance.check import Report
from leakboard.bench.conformance.rules import Result
from leakboard.bench.contracts.notebook import MOST_ROWS, notebook_html
from leakboard.leaderboards.results.attacked import Attacked
from leakboard.leaderboards.results.results import Results

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>\x1b[2J"
KNOWN = {"div", "p", "strong", "small", "table", "thead", "tbody", "tr", "th", "td"}


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.names = set()
        self.attributes = set()
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text += data


def results():
    return Results.of(compared({75.0: (0.5, 0.88)}, task="reviews"), EVIL)


def choice():
    return lb.choose("reviews", "inputs", records=results())


SHOWN = {
    "Results": (lambda: replace(results(), problems=(EVIL,)), "SAP, η = 75"),
    "Choice": (lambda: replace(choice(), why=EVIL), "leakage"),
    "Report": (
        lambda: Report(EVIL, (Result("is quick", "failed", EVIL),)),
        "breaks 1 of the rules",
    ),
    "Attacked": (
        lambda: Attacked(leaks=(leak(0.9),), summary=(EVIL, EVIL)),
        "token accuracy",
    ),
    "Finding": (lambda: replace(results().findings()[0], sentence=EVIL), "records"),
}


@pytest.mark.parametrize("kind", SHOWN)
def test_a_notebook_shows_the_content_and_hostile_names_as_text(kind):
    make, word = SHOWN[kind]
    shown = make()
    assert type(shown).__name__ == kind
    html = shown._repr_html_()
    found = Elements()
    found.feed(html)
    assert found.names <= KNOWN
    assert found.attributes == {"class"}
    assert "<script>alert(1)</script>" in found.text
    assert word in found.text
    assert "\x1b" not in html
    assert len(html) < 10_000


def test_long_tables_end_with_the_number_of_the_other_rows():
    html = notebook_html("many", ("a", "b"), [("x" * 9999, "y")] * (MOST_ROWS + 5))
    assert "and 5 more rows" in html
    assert html.count("<tr>") == MOST_ROWS + 1
    assert "x" * 600 not in html
