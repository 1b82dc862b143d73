"""Documents quote findings that are generated, word for word."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial

import pytest
from paths import ROOT

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.scoring.certificates import NEEDED
from leakboard.leaderboards.findings.every import RULES
from leakboard.leaderboards.findings.finding import CALLED, Finding
from leakboard.leaderboards.findings.papers import papers
from leakboard.leaderboards.findings.quoting import chosen, quoted
from leakboard.leaderboards.tables.printed import artefacts
from leakboard.leaderboards.tables.record_set import RecordSet

CALLED_GOALS = {name: goal for goal, name in CALLED.items()}
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "docs" / "findings.md",
    ROOT / "docs" / "contradictions.md",
    ROOT / "docs" / "beside_the_papers.md",
]


@pytest.fixture(scope="module")
def records():
    import leakboard

    return leakboard.published()


@pytest.fixture(scope="module")
def today(records):
    return records.findings()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_documents_quote_what_the_published_records_show_today(path, records, today):
    text = path.read_text("utf-8")
    told = quoted(text, today, partial(papers, found=records))
    assert text == told, f"run: leakboard findings --into {path.relative_to(ROOT)}"


def test_every_table_that_was_typed_from_a_paper_stands_in_the_document():
    text = (ROOT / "docs" / "beside_the_papers.md").read_text("utf-8")
    for paper, artefact in artefacts():
        assert f'<!-- papers: {paper} "{artefact}" -->' in text


def test_published_records_of_one_cell_agree(records):
    assert not records.problems


def test_published_records_bear_findings_of_several_rules(today):
    by_rule = Counter(one.rule for one in today)
    assert len(today) >= 8
    assert by_rule.keys() <= RULES.keys()
    assert by_rule["elsewhere"] >= 4
    assert by_rule["variants"] >= 1


def test_no_published_claim_praises_without_a_certificate(records, today):
    rows = records.frame().dropna(subset=["success"])
    praising = [one for one in today if re.search("lowers the leak|shows no clear leak", one.claim)]
    assert len(praising) > 8
    for one in praising:
        goal = CALLED_GOALS[re.search(r"leak of ((?:the )?\w+)", one.claim)[1]]
        own = rows[rows["key"].isin(one.keys) & (rows["attack"] == one.attack)]
        own = own[own["goal"] == goal].drop_duplicates(["key", "attack_params", "channel"])
        assert (own["certificate"] >= NEEDED).any(), one.claim


def finding(rule="elsewhere", task="sst2", claim="A leaks."):
    return Finding(rule, claim, task, "minilm", ("a",), "AUC", 0.9, (0.8, 1.0), 10, 3, "x", ("k",))


TEXT = "before\n<!-- findings: elsewhere task=sst2 -->\nold\n<!-- /findings -->\nafter\n"


def test_a_block_holds_the_claims_of_its_rules_and_task():
    told = quoted(
        TEXT,
        [
            finding(),
            finding(task="mrpc", claim="Not here."),
            finding("depth", claim="Nor this."),
            finding(claim="B leaks."),
        ],
        str,
    )
    assert told == (
        "before\n<!-- findings: elsewhere task=sst2 -->\n\n- A leaks.\n- B leaks.\n\n"
        "<!-- /findings -->\nafter\n"
    )
    assert quoted(told, [finding(), finding(claim="B leaks.")], str) == told


def test_several_blocks_are_filled_each_by_itself():
    text = TEXT + "<!-- findings: depth -->\n<!-- /findings -->\n"
    told = quoted(text, [finding(), finding("depth", claim="Deep.")], str)
    assert told.index("- A leaks.") < told.index("after") < told.index("- Deep.")
    assert told.count("<!-- /findings -->") == 2


def test_a_block_of_an_unknown_rule_is_refused():
    with pytest.raises(LeakboardError, match=r"unknown 'elsewere'\. Did you mean 'elsewhere'"):
        quoted(TEXT.replace("elsewhere", "elsewere"), [], str)


def test_a_block_about_papers_holds_what_is_laid_beside_their_tables():
    text = TEXT + '<!-- papers: SAP "Table 3" by-privacy -->\nold\n<!-- /papers -->\n'
    told = quoted(text, [finding()], "beside {}\n".format)
    assert told.endswith(
        '<!-- papers: SAP "Table 3" by-privacy -->\n\nbeside SAP "Table 3" by-privacy\n\n<!-- /papers -->\n'
    )
    assert "- A leaks." in told


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ('SAP "Table 5"', 'SAP "Table 4"'),
        ('SAP "Table 3" by-privcy', "by-privacy"),
        ("verdict", "verdicts"),
    ],
)
def test_a_block_of_an_unknown_table_or_way_is_refused(words, hint):
    with pytest.raises(LeakboardError, match=f"unknown.*{hint}"):
        papers(words, RecordSet.of([]))


def test_of_no_rule_all_are_chosen():
    every = [finding(), finding("depth")]
    assert chosen(every, []) == every
    assert chosen(every, ["depth"]) == every[1:]
