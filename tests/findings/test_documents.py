"""Blocks of documents are written anew by the writer of their kind."""

import pytest

from leakboard.bench.contracts import LeakboardError
from leakboard.leaderboards.findings.documents import (
    bullets,
    chosen,
    claims_table,
    fill,
    papers,
)
from leakboard.leaderboards.findings.finding import Finding, listing
from leakboard.leaderboards.tables.intervals import MISSING, Interval
from leakboard.leaderboards.tables.record_set import RecordSet


def finding(rule="elsewhere", task="sst2", sentence="A leaks.", value=MISSING):
    return Finding(rule, sentence, task, "minilm", "leakage", value, 3, 10, "x", ("a",), ("k",))


TEXT = "before\n<!-- findings: elsewhere task=sst2 -->\nold\n<!-- /findings -->\nafter\n"


def quoted(text, found):
    return fill(
        text,
        {
            "findings": lambda words: bullets(chosen(found, words.split())),
            "papers": "table {}\n".format,
            "claims": "claims {}\n".format,
        },
    )


def test_a_block_holds_the_sentences_of_its_rules_and_task():
    told = quoted(
        TEXT,
        [
            finding(),
            finding(task="mrpc", sentence="Not here."),
            finding("depth", sentence="Nor this."),
            finding(sentence="B leaks."),
        ],
    )
    assert told == (
        "before\n<!-- findings: elsewhere task=sst2 -->\n\n- A leaks.\n- B leaks.\n\n"
        "<!-- /findings -->\nafter\n"
    )
    assert quoted(told, [finding(), finding(sentence="B leaks.")]) == told


def test_several_blocks_are_filled_each_by_its_kind():
    text = TEXT + "<!-- findings: depth -->\n<!-- /findings -->\n"
    text += '<!-- papers: SAP "Table 3" -->\nold\n<!-- /papers -->\n'
    text += "<!-- claims: SAP -->\n<!-- /claims -->\n"
    told = quoted(text, [finding(), finding("depth", sentence="Deep.")])
    assert told.index("- A leaks.") < told.index("after") < told.index("- Deep.")
    assert told.count("<!-- /findings -->") == 2
    assert 'table SAP "Table 3"' in told
    assert told.endswith("<!-- claims: SAP -->\n\nclaims SAP\n\n<!-- /claims -->\n")
    assert "old" not in told


def test_a_block_of_an_unknown_rule_is_refused():
    with pytest.raises(LeakboardError, match=r"unknown 'elsewere'\. Did you mean 'elsewhere'"):
        quoted(TEXT.replace("elsewhere", "elsewere"), [])
    with pytest.raises(LeakboardError, match="'tsk=': unknown"):
        chosen([], ["tsk=sst2"])


def test_a_block_of_an_unknown_table_or_claim_is_refused():
    with pytest.raises(LeakboardError, match=r'unknown.*SAP "Table 4"'):
        papers('SAP "Table 5"', RecordSet.of([]))
    with pytest.raises(LeakboardError, match="claims: unknown 'SAPP'"):
        claims_table("SAPP", [])


def test_of_no_rule_all_are_chosen():
    every = [finding(), finding("depth")]
    assert chosen(every, []) == every
    assert chosen(every, ["depth"]) == every[1:]


def test_numbers_that_do_not_exist_are_null_in_data():
    assert finding().plain()["value"] is None
    assert finding().plain()["interval"] is None
    known = finding(value=Interval(0.5, 0.4, 0.6)).plain()
    assert (known["value"], known["interval"]) == (0.5, [0.4, 0.6])


def test_words_are_listed_once_each():
    assert listing(["a"]) == "a"
    assert listing(["a", "b", "a"]) == "a and b"
    assert listing("abc") == "a, b and c"
