"""Pages of methods and boards: the verdict first, everything from the same matrices."""

from __future__ import annotations

import re
from html import unescape

import pytest
from records import leak, record
from site_records import EVIL, kept, plain_records

from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.leaderboards.site.beside import beside
from leakboard.leaderboards.site.board_tables import WHERE, board_table
from leakboard.leaderboards.site.collection import collect
from leakboard.leaderboards.site.content import Content
from leakboard.leaderboards.site.front import answer
from leakboard.leaderboards.site.links import Links, slug
from leakboard.leaderboards.site.markup import prose
from leakboard.leaderboards.site.method_answers import dots_of, reach, standings_of
from leakboard.leaderboards.tables.boards import boards
from leakboard.leaderboards.tables.comparisons import comparisons
from leakboard.leaderboards.tables.frame import frame
from leakboard.leaderboards.tables.matrix import matrices


@pytest.fixture(scope="module")
def found():
    """The matrices of records of which sap hides inputs in part and gives labels away."""
    label = leak(0.9, "spectral", Goal.LABEL, 0.5, channel=Channel.ACTIVATIONS)
    made = [record("none", {}, s, 0.9, [leak(0.99), label], undefended=True) for s in (0, 1)] + [
        record("sap", {"eta": eta}, s, 0.88, [leak(success), label], undefended=eta is None)
        for s in (0, 1)
        for eta, success in ((None, 0.99), (50.0, 0.5), (100.0, 0.8))
    ]
    made += [record("dc", {"weight": 0.5}, s, 0.85, [leak(0.99), label]) for s in (0, 1)]
    return made


def answers(records):
    return [(matrix, answer(matrix, Links())) for matrix in matrices(comparisons(records))]


def test_the_verdict_on_a_defense_says_what_it_hides_what_it_leaks_to_whom_and_at_what_cost(found):
    (one,) = standings_of("sap", answers(found))
    assert one.sentence == (
        "On reviews with η = 50 it partly hides inputs (0.53 kept, eia-nn) and leaks labels (0.20 kept, "
        "spectral); it costs 2.0 [2.0, 2.0] points of utility."
    )
    assert standings_of("dpsgd", answers(found)) == []


def test_names_in_backticks_are_code_and_nothing_else_is_markup():
    assert prose("as `eia-nn` does <b>&") == "as <code>eia-nn</code> does &lt;b&gt;&amp;"
    assert prose("one ` alone") == "one ` alone"


def test_the_chart_of_a_defense_has_its_settings_by_name_and_the_others_pale(found):
    ((matrix, one),) = answers(found)
    dots = list(dots_of("sap", matrix, one, Links()))
    own = {dot.name: round(dot.leak, 3) for dot in dots if not dot.pale}
    assert own == {"η = none": 0.989, "η = 50": 0.474, "η = 100": 0.789}
    # What dc hides was read, too.
    pale = {dot.href for dot in dots if dot.pale}
    assert pale == {"defenses/none.html", "defenses/dc.html"}


def test_an_attack_says_where_it_works_and_where_it_finds_nothing_clear():
    made = [
        record("none", {}, 0, 0.9, [leak(0.99)], undefended=True),
        record("sap", {"eta": 50.0}, 0, 0.9, [leak(0.05)]),
        record("sap", {"eta": 100.0}, 0, 0.9, [leak(0.8)]),
        record("dc", {}, 0, 0.9, [leak(0.04)]),
        record("p3eft", {}, 0, 0.9, [leak(None, status="failed", reason="no memory")]),
    ]
    table = reach(frame(made), Links())
    told = {row[0].text: (row[1].text, row[2].text, row[5].text) for row in table.rows}
    assert told == {
        "none": ("works", "1 of 1", "0.990"),
        "sap": ("in part", "1 of 2", "0.800"),
        "dc": ("finds nothing clear", "0 of 1", "0.040"),
    }
    assert reach(frame(made[-1:]), Links()) is None


def test_all_defenses_stand_beside_each_other_with_the_words_of_the_matrix(found):
    ((matrix, one),) = answers(found)
    pairs = beside([matrix], Links())
    assert sorted(pairs.defenses) == ["dc", "none", "sap"]
    assert set(pairs.given) == {"sap", "dc"}
    rows = dict(pairs.parts[one.title])
    at = pairs.defenses.index("sap")
    assert rows["inputs"][at].text == "◐ partly"
    assert rows["labels"][at].text == "○ leaks"
    assert (rows["cost"][at].text, rows["setting"][at].text) == ("2.0", "η = 50")
    assert beside([], Links()) is None


def test_boards_of_one_question_are_one_table_that_says_what_is_compared_with_what(found):
    others = [
        one.model_copy(update={"cell": cell, "key": cell.key})
        for one in found
        for cell in [one.cell.model_copy(update={"task": "mrpc"})]
    ]
    every = [b for b in boards(comparisons([*found, *others])) if b.name == "front"]
    table = board_table(every, Links())
    names = [column.name for column in table.columns]
    assert names[:2] == ["defense", "setting"]
    assert tuple(names[-4:]) == WHERE
    assert len(table.rows) == sum(len(board.rows) for board in every)
    where = {tuple(cell.text for cell in row[-4:]) for row in table.rows}
    assert len(where) == len(every) == 4
    assert next(column.number for column in table.columns if column.name == "privacy")


def test_the_page_of_a_method_begins_with_the_verdict_and_folds_the_certificates(site):
    page = (site / "defenses" / "sap.html").read_text("utf-8")
    order = [
        'class="verdict"',
        '<svg class="scatter"',
        'id="settings"',
        "<summary>Certificates",
        'id="records"',
    ]
    places = [page.index(part) for part in order]
    assert places == sorted(places)
    told = unescape(page)
    assert "On reviews with" in told
    assert "points of utility." in told
    assert 'id="reach"' in (site / "attacks" / "eia-nn.html").read_text("utf-8")


def test_a_method_without_a_result_or_that_is_not_known_here_says_so(site):
    assert "No record of it is published here" in (site / "defenses" / "crt.html").read_text(
        "utf-8"
    )
    assert "no result of it is published here" in (site / "attacks" / "rmia.html").read_text(
        "utf-8"
    )
    text = (site / "defenses" / f"{slug(EVIL)}.html").read_text("utf-8")
    assert "not registered where the site was built" in text
    assert "no comparison holds it" in text


def test_every_method_is_listed_under_what_it_hides_or_looks_for(site):
    page = unescape(re.sub(r"<[^>]+>", "", (site / "methods.html").read_text("utf-8")))
    for head in (
        "hides inputs",
        "hides labels",
        "hides the training set",
        "looks for members",
        "known from records alone",
    ):
        assert head in page
    assert page.index("hides inputs") < page.index("sap-cti") < page.index("hides labels")


def test_where_nothing_can_be_compared_the_page_of_pairs_says_so(tmp_path):
    shown = Content(collect([kept(tmp_path / "one", plain_records()[:1])]))
    assert beside(shown.matrices, Links()) is None
