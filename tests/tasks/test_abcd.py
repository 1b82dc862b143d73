"""Dialogues of ABCD: what was said, and what the scenario hides."""

from __future__ import annotations

import gzip
import json

import pytest

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.tasks.loading import load_task

CALL = {
    "convo_id": 1,
    "scenario": {
        "personal": {
            "customer_name": "ada  boole",
            "email": "ab1@email.com",
            "phone": "(97) 62-26",
        },
        "order": {
            "street_address": "6821 1st ave",
            "full_address": "6821 1st ave  san mateo, ny 75227",
            "zip_code": "75227",
            "order_id": None,
        },
    },
    "original": [
        ["agent", "Hi!  Your name?"],
        ["customer", "Ada Boole, adamant, AB1@email.com"],
        ["action", "Account has been pulled up for Ada Boole."],
        ["agent", "Thanks Ada. (97) 62-26, 6821 1st Ave San Mateo, NY 75227?"],
        ["customer", "6821 1st ave, 75227"],
    ],
    "delexed": [{"speaker": "agent", "text": "hi!"}],
}


@pytest.mark.parametrize("packed", [False, True])
def test_abcd_keeps_what_was_said_and_marks_what_the_scenario_hides(packed, tmp_path):
    (tmp_path / "abcd").mkdir()
    content = json.dumps({"train": [CALL], "dev": [CALL], "test": [CALL]}).encode()
    name = "abcd_v1.1.json" + ".gz" * packed
    (tmp_path / "abcd" / name).write_bytes(gzip.compress(content) if packed else content)
    task = load_task("abcd", tmp_path)
    assert (task.objective, set(task.splits)) == ("language modelling", {"train", "dev", "test"})
    split = task.split("train")
    (text,), (spans,) = split.texts, split.secrets
    assert text.startswith(
        "Agent: Hi! Your name? Customer: Ada Boole, adamant, AB1@email.com Agent:"
    )
    assert "pulled up" not in text
    assert [(text[s.start : s.end], s.kind) for s in spans] == [
        ("Ada Boole", "name"),
        ("AB1@email.com", "email"),
        ("Ada", "name"),
        ("(97) 62-26", "phone"),
        ("6821 1st Ave San Mateo, NY 75227", "address"),
        ("6821 1st ave", "address"),
        ("75227", "zip"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("notes.txt", b"", "expected the authors' file, abcd_v1.1.json or"),
        ("abcd_v1.1.json", b"[1", "abcd_v1.1.json.*JSON"),
        ("abcd_v1.1.json", b'{"train": [{"original": []}]}', "train.0.scenario: Field required"),
        ("abcd_v1.1.json", b'{"train": []}', "no conversations under 'train'"),
        ("abcd_v1.1.json.gz", b"no gzip", "cannot be read"),
    ],
)
def test_a_file_that_is_not_abcd_is_named(name, content, message, tmp_path):
    (tmp_path / "abcd").mkdir()
    (tmp_path / "abcd" / name).write_bytes(content)
    with pytest.raises(LeakboardError, match=message):
        load_task("abcd", tmp_path)


def test_without_a_folder_the_error_says_where_abcd_is(monkeypatch):
    monkeypatch.delenv("LEAKBOARD_DATA", raising=False)
    with pytest.raises(LeakboardError, match=r"get https://github.com/asappresearch.*DIR/abcd"):
        load_task("abcd")
