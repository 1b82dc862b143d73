"""Words of a command that are no names, paths or numbers: one sentence and code 2, whatever they are."""

from __future__ import annotations

import pytest

WORDS = [
    "[/x]",
    "[red]x[/blue]",
    "x" * 300,
    "x" * 5000,
    "a/" * 3000,
    "a\0b",
    "\udcff",
    "~nouser/x",
    "gone.yaml",
    "9" * 6000,
    "\x1b[2J",
    "/dev/zero",
]
COMMANDS = [
    ["run"],
    ["plan", "my.yaml", "--task", "sst2", "--data"],
    ["plan", "my.yaml", "--model"],
    ["plan", "my.yaml", "--task"],
    ["plan", "my.yaml", "--seeds"],
    ["attack", "sent", "--model", "tiny-bert", "--truth"],
    ["attack", "sent", "--truth", "t.tsv", "--model"],
    ["detect", "--detector", "patterns"],
    ["show"],
    ["check"],
    ["new", "attack"],
    ["submit"],
    ["verify"],
    ["verify", "a.zip", "--rerun"],
    ["verify", "a.zip", "--seed"],
]
SUITE = "name: mine\ntask: reviews\nmodel: tiny-bert\nlimit: 30\ndefenses: none\nattacks: [prior]\n"


@pytest.mark.parametrize("word", WORDS, ids=range(len(WORDS)))
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_word_that_is_none_ends_with_a_sentence(leakboard, tmp_path, monkeypatch, command, word):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LEAKBOARD_DATA", raising=False)
    (tmp_path / "my.yaml").write_text(SUITE)
    (tmp_path / "gone.yaml").symlink_to("nowhere.yaml")
    before = sorted(tmp_path.rglob("*"))
    code, out, err = leakboard(*command, word)
    assert code == 2, out + err
    assert "Traceback" not in err
    assert 0 < len(err) < 2000
    assert all(c.isprintable() or c == "\n" for c in out + err)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_column_and_a_kind_with_markup_are_shown_as_they_are(leakboard, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spans = '[{"start": 0, "end": 5, "kind": "[/x]"}]'
    (tmp_path / "[b].tsv").write_text(f"text\tspans\nhello you\t{spans}\n")
    code, out, err = leakboard("detect", "[b].tsv", "--detector", "patterns")
    assert code == 0, err
    assert "patterns on [b].tsv" in out
    assert "recall of [/x]" in out


def test_a_folder_that_cannot_be_written_is_an_error_of_the_disk(leakboard, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.yaml").write_text(SUITE)
    (tmp_path / "file").write_text("")
    code, _, err = leakboard("run", "my.yaml", "--out", "file/inside")
    assert code == 2
    assert "Not a directory" in err
