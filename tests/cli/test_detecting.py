"""`leakboard detect`: what a detector finds, in numbers."""

from __future__ import annotations

import re

import pytest
from secret_texts import SENTENCE, own_file

from leakboard.bench.defending.detectors import DETECTORS


def lines(out):
    return [" ".join(line.split()) for line in out.splitlines()]


def value(out, measure):
    """Value and the counts at the end of the line of a measure."""
    (found,) = [line for line in lines(out) if re.match(rf"{measure} [\d–]", line)]
    told = re.fullmatch(rf"{measure} (\S+) \[.*\](?: \d\.\d+)?(.*)", found)
    return told[1], told[2].split()


def test_the_command_measures_a_detector_on_an_own_file(leakboard, tmp_path):
    code, out, _ = leakboard("detect", own_file(tmp_path, ".csv"), "--detector", "patterns")
    assert code == 0
    assert "patterns on own.csv, file, 3 texts" in out
    # E-mail and phone are found, the name is not.
    assert value(out, "recall") == ("0.667", ["2", "3"])
    assert value(out, "miss-rate") == ("0.333", ["2", "3"])
    assert value(out, "recall of name") == ("0.000", ["1", "1"])
    assert value(out, "precision") == ("1.000", ["2"])
    assert value(out, "masked tokens") == ("0.222", ["3"])  # 2 of 9


def test_the_command_shows_only_what_is_masked_where_nothing_is_marked(leakboard):
    code, out, _ = leakboard("detect", "reviews", "--detector", "patterns", "--limit", 50)
    assert code == 0
    assert "reviews, dev, 50 texts" in out
    assert "masked words" in out
    assert "recall" not in out
    assert "No secrets are marked" in out


def test_the_command_takes_a_pipeline(leakboard, tmp_path, pipelines):
    path = own_file(tmp_path, ".csv", [(SENTENCE, '[{"start": 0, "end": 11, "kind": "name"}]')])
    code, out, _ = leakboard("detect", path, "--detector", "high-entity", "--spacy", pipelines["whole"])  # fmt: skip
    assert code == 0
    assert value(out, "recall") == ("1.000", ["1", "1"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["reviews", "--detector", "pattern"], "--detector: unknown detector 'pattern'. Did you mean 'patterns'?"),
        (["reviews", "--detector", "exact"], "needs marked secrets, but these texts have none"),
        (["wnut", "--detector", "patterns"], "unknown data 'wnut', and no file .tsv or .tsv.gz or .csv or .csv.gz or .jsonl or .jsonl.gz or .json or .parquet or .txt. Did you mean 'wnut17'?"),
        (["no.csv", "--detector", "patterns"], "no.csv: no such file"),
        (["reviews", "--detector", "patterns", "--split", "devv"], "has no split 'devv'"),
    ],
)  # fmt: skip
def test_the_command_tells_what_is_wrong(leakboard, words, message):
    code, _, err = leakboard("detect", *words)
    assert code == 2
    assert message in err


def test_a_corpus_that_is_not_there_names_the_option(leakboard, tmp_path, monkeypatch):
    monkeypatch.delenv("LEAKBOARD_DATA", raising=False)
    code, _, err = leakboard("detect", "wnut17", "--detector", "patterns", "--data", tmp_path)
    assert code == 2
    assert "no folder 'wnut17'" in err
    assert "--data" in err


def test_the_help_names_every_detector(leakboard):
    _, out, _ = leakboard("detect", "--help")
    assert [name for name in DETECTORS if name not in out] == []
