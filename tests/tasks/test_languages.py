"""Chinese, Arabic and emoji through every reader, tokeniser, detector and page."""

from __future__ import annotations

import gzip
import json
from io import StringIO

import pandas as pd
import pytest
from cells import load_tiny, make
from rich.console import Console

from leakboard.bench.defending import Detector, language_note
from leakboard.bench.defending.detectors import mask_text
from leakboard.bench.defending.languages import other_script_share
from leakboard.bench.running.plan import plan_notes
from leakboard.bench.tasks import UserTask, load_task
from leakboard.defenses.none import NoDefense
from leakboard.defenses.redacted import Redacted
from leakboard.leaderboards.rendering import Cell, Column, Table, TerminalTable, html_table

SCRIPTS = {
    "Chinese": ("这部电影非常好看", "差评", "好评"),
    "Arabic": ("الفيلم جيد جدا و الممثلون", "سلبي", "إيجابي"),
    "emoji": ("👩‍👩‍👧 great 🎬 film 👍🏽", "👎", "👍"),
    "combining": ("cafe\u0301 nai\u0308ve Ångström", "nein", "schön"),
}


def frame(script, n=60):
    text, *labels = SCRIPTS[script]
    rows = [f"{text} {i}" for i in range(n)]
    return pd.DataFrame({"text": rows, "label": [labels[i % 2] for i in range(n)]})


def write_jsonl(data, path):
    data.to_json(path, orient="records", lines=True, force_ascii=False)


def write_packed(data, path):
    lines = (json.dumps(row) for row in data.to_dict("records"))  # as \u escapes
    path.write_bytes(gzip.compress("\n".join(lines).encode()))


WRITERS = {
    "a.csv": lambda data, path: data.to_csv(path, index=False),
    "a.tsv": lambda data, path: data.to_csv(path, index=False, sep="\t"),
    "excel.csv": lambda data, path: data.to_csv(path, index=False, encoding="utf-8-sig", sep=";"),
    "unicode text.tsv": lambda d, path: d.to_csv(path, index=False, encoding="utf-16", sep="\t"),
    "a.jsonl": write_jsonl,
    "a.jsonl.gz": write_packed,
    "a.json": lambda data, path: data.to_json(path, orient="records", force_ascii=False),
    "a.parquet": lambda data, path: data.to_parquet(path),
}


def pairs_of(task):
    """All texts of a task with their labels."""
    return {
        (text, task.labels[label])
        for split in task.splits.values()
        for text, label in zip(split.texts, split.labels.tolist(), strict=True)
    }


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("name", [*WRITERS, "a frame", "lines.txt"])
def test_every_reader_keeps_every_character(tmp_path, script, name):
    data = frame(script)
    path = tmp_path / name
    if name == "lines.txt":
        path.write_text("\n".join(data.text), encoding="utf-8")
        task = load_task(UserTask(name="mine", path=path))
        assert {text for split in task.splits.values() for text in split.texts} == {*data.text}
        return
    if name in WRITERS:
        WRITERS[name](data, path)
    task = load_task(UserTask(name="mine", path=path if name in WRITERS else data))
    assert pairs_of(task) == {*zip(data.text, data.label, strict=True)}


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("model", ["tiny-bert", "tiny-roberta", "tiny-gpt2"])
def test_every_tokeniser_makes_tokens_of_every_text(model, script):
    backbone = load_tiny(model)
    texts = [SCRIPTS[script][0], "plain words"]
    tokens = backbone.encode(texts, None, 32, opened=model == "tiny-gpt2")
    own = (~tokens.take(tokens.lengths.new_tensor([0])).special).sum()
    assert int(own) >= 1
    assert bool((tokens.ids.values < len(backbone.embeddings)).all())


@pytest.mark.parametrize("script", SCRIPTS)
def test_spans_of_detectors_are_in_characters_and_masks_leave_the_rest_alone(script):
    text = SCRIPTS[script][0]
    whole = f"{text} anna@example.org {text}"
    spans = Detector(name="patterns").detect([whole]).spans[0]
    mail = next(span for span in spans if span.kind == "email")
    assert whole[mail.start : mail.end] == "anna@example.org"
    assert mask_text(whole, [mail]) == f"{text} <MASK> {text}"


def test_the_script_of_a_text_is_that_of_most_of_its_letters():
    assert other_script_share([SCRIPTS["Chinese"][0], SCRIPTS["Arabic"][0]]) == 1
    assert other_script_share(["12 34 !", "👍", SCRIPTS["combining"][0], "a film, 好"]) == 0
    assert language_note("patterns", "", ["plain words"]) is None
    assert language_note("exact", "", [SCRIPTS["Chinese"][0]]) is None
    assert language_note("low-entity", "zh_core_web_sm", [SCRIPTS["Chinese"][0]]) is None
    assert "knows English, but 100%" in language_note("presidio", "", [SCRIPTS["Arabic"][0]])


def test_a_plan_says_that_a_detector_does_not_know_the_script():
    task = UserTask(name="mine", path=frame("Chinese"))
    plan = make(NoDefense(), Redacted(), Redacted(detector="high-entity"), task=task, attacks=())
    notes = [note for note in plan_notes(plan) if "detector" in note]
    assert [note.split(" knows")[0] for note in notes] == [
        "redacted on mine: the detector 'patterns'",
        "redacted on mine: the detector 'high-entity'",
    ]
    english = UserTask(name="mine", path=frame("combining"))
    plan = make(Redacted(), task=english, attacks=())
    assert not [note for note in plan_notes(plan) if "detector" in note]


@pytest.mark.parametrize("script", SCRIPTS)
def test_tables_on_pages_and_terminals_show_every_character(script):
    text = SCRIPTS[script][0]
    table = Table(text, [Column(text), Column("n")], [[Cell(text, text), Cell("1")]])
    page = str(html_table(table))
    assert page.count(text) >= 3
    console = Console(width=100, file=StringIO())
    console.print(TerminalTable(table))
    assert text in console.file.getvalue()
