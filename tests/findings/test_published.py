"""What the published records say: short, supported, and the same in every document."""

import math
import time

import pytest
from paths import ROOT

from leakboard.bench.contracts import Goal
from leakboard.leaderboards.findings import TITLES, Writers, fill, findings
from leakboard.leaderboards.findings.engine import Contrast
from leakboard.leaderboards.findings.rules import RULES
from leakboard.leaderboards.tables.claims import differences_of, printed_claims
from leakboard.leaderboards.tables.curves import BUDGET
from leakboard.leaderboards.tables.leakage import Reader
from leakboard.leaderboards.tables.printed import artefacts

DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "docs" / "findings.md",
    ROOT / "docs" / "contradictions.md",
    ROOT / "docs" / "beside_the_papers.md",
    ROOT / "docs" / "what_we_got_wrong.md",
    ROOT / "results" / "PLAN.md",
]


@pytest.fixture(scope="module")
def records():
    import leakboard

    return leakboard.published()


@pytest.fixture(scope="module")
def table(records):
    return records.table


@pytest.fixture(scope="module")
def today(table):
    return findings(table)


@pytest.fixture(scope="module")
def writers(records):
    return Writers(records)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_documents_hold_what_the_published_records_show_today(path, writers):
    text = path.read_text("utf-8")
    assert text == fill(text, writers), f"run: leakboard findings --into {path.relative_to(ROOT)}"


def test_every_printed_table_and_every_paper_with_claims_stands_in_the_document():
    text = (ROOT / "docs" / "beside_the_papers.md").read_text("utf-8")
    for paper, artefact in artefacts():
        assert f'<!-- papers: {paper} "{artefact}" -->' in text
    for paper in {one.paper for one in printed_claims()}:
        assert f"<!-- claims: {paper} -->" in text


def test_published_records_of_one_cell_agree(records):
    assert not records.problems


def test_there_are_at_most_sixty_sentences_of_at_most_thirty_words(today):
    assert 30 <= len(today) <= 60
    assert [one.sentence for one in today if len(one.sentence.split()) > 30] == []
    assert len({one.sentence for one in today}) == len(today)


def test_the_most_important_come_first_and_every_sentence_has_its_records(records, today):
    order = [list(TITLES).index(one.rule) for one in today]
    assert order == sorted(order)
    keys = {record.key for record in records}
    assert all(one.keys and set(one.keys) <= keys for one in today)


def test_sentences_take_seconds(table):
    start = time.process_time()
    findings(table)
    assert time.process_time() - start < 5


def test_no_sentence_recommends_a_setting_above_the_budget_as_the_best(table, today):
    headlines = [one for one in today if one.rule == "headlines"]
    assert len(headlines) >= 5
    for one in headlines:
        if "the cheapest that does" in one.sentence:
            assert "no defense clearly hides" in one.sentence
            assert one.metric == "cost"
            assert one.value.value > BUDGET
            continue
        costs = [
            row.cost.value
            for row in table
            if row.has_cost and set(row.setting.keys) <= set(one.keys)
        ]
        assert costs
        assert min(costs) <= BUDGET


def test_what_randomised_response_sends_lies_at_its_law_and_texts_say_more(table):
    """At ε = 2 a sent label is the true one with the probability e² / (1 + e²); who reads the text knows more."""
    law = math.exp(2) / (1 + math.exp(2))

    def rows(attack, channel):
        found = table.under(Reader((attack,), (channel,)))
        own = found.select(defense="randomised-response", goal=Goal.LABEL)
        return [row for row in own if row.setting.knob_value == 2]

    sent, with_text = rows("pooled-moments", "gradients"), rows("public-label", "tokens")
    assert sent
    assert with_text
    assert all(row.success.low <= law <= row.success.high for row in sent)
    assert all(row.success.low > law for row in with_text)


@pytest.mark.parametrize("defense", ["offsite-tuning", "dpnr"])
def test_some_defenses_are_judged_against_themselves_without_protection(defense, table, today):
    names = {"offsite-tuning": "Offsite-tuning", "dpnr": "DPNR"}
    (one,) = [f for f in today if f.rule == "twin" and f.sentence.startswith(names[defense])]
    assert one.metric == "leakage"
    rows = [row for row in table if set(row.setting.keys) <= set(one.keys)]
    assert {row.defense for row in rows} == {defense}
    assert {row.setting.undefended for row in rows} == {True, False}


def test_no_claim_of_p3eft_against_no_protection_is_decided_by_the_frozen_encoder(table):
    claims = [one for one in printed_claims() if one.a.defense == "p3eft"]
    assert len(claims) > 10
    for claim in claims:
        for pair in differences_of(claim, table):
            assert "frozen" not in (pair.a.defense, pair.b.defense)


def test_utilities_and_costs_are_compared_at_equal_tuning_only(table):
    compared = [
        one
        for rule in RULES
        if isinstance(rule, Contrast) and rule.metric in ("utility", "cost")
        for one in rule.differences(table)
    ]
    claims = [one for one in printed_claims() if one.metric in ("utility", "perplexity")]
    compared += [one for claim in claims for one in differences_of(claim, table)]
    told = [one for one in compared if not one.mean.is_missing]
    assert told
    assert all(one.a.setting.trials == one.b.setting.trials for one in told)
    # Some pairs were tuned unequally, and are not told.
    assert any("not tuned alike" in one.reason for one in compared)
