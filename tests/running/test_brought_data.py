"""Users' data from Python and chats, run as whole cells."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from cells import run

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.running import make_plan, task_notes
from leakboard.bench.suites import load_suite
from leakboard.bench.tasks import UserTask
from leakboard.bench.tuning.tuned_suite import check_file
from leakboard.defenses.none import NoDefense
from leakboard.defenses.untuned import Untuned


def rows(n=120, rare=0):
    rng = np.random.default_rng(0)
    words = ["order", "room", "agent", "good", "bad", "today", "number", "call"]
    texts = [f"{' '.join(rng.choice(words, 6))} {i}" for i in range(n)]
    labels = ["rare" if rare and i % rare == 0 else ("a", "b")[i % 2] for i in range(n)]
    return pd.DataFrame({"text": texts, "label": labels})


def suite(**task):
    return {
        "name": "mine",
        "task": {"name": "mine", **task},
        "model": "tiny-bert",
        "limit": 40,
        "train": {"epochs": 1},
        "defenses": ["none"],
        "attacks": ["eia-nn"],
    }


def test_a_frame_is_a_task_of_a_suite_from_python_and_of_no_file(tmp_path):
    loaded = load_suite(suite(path=rows()))
    (task,) = make_plan(loaded).tasks.values()
    assert sum(map(len, task.splits.values())) == 120
    parts = {"train": rows(), "validation": rows(40)}
    (divided,) = make_plan(load_suite(suite(path=parts))).tasks.values()
    assert len(divided.splits["dev"]) == 40
    with pytest.raises(LeakboardError, match="data from Python, which a file cannot contain"):
        check_file(loaded, tmp_path / "tuned.yaml")


def test_the_plan_says_how_many_texts_are_what_and_why():
    notes = task_notes(make_plan(load_suite(suite(path=rows()))))
    assert notes[0].startswith("mine: ")
    for words in (
        "texts to train on",
        "public, known to attackers",
        "in dev",
        "in test",
        "limit: at most 40",
    ):
        assert words in notes[0]
    assert any("divided into train, dev and test, 80/10/10" in note for note in notes)
    assert any("whole sources drawn by hash" in note for note in notes)


def test_the_plan_warns_of_texts_that_repeat_and_of_a_split_with_one_class():
    plain = task_notes(make_plan(load_suite(suite(path=rows()))))
    assert not any("different" in note or "says nothing" in note for note in plain)
    again = pd.concat([rows(12)] * 10)
    one = {"train": again, "dev": rows(20).assign(label="a")}
    notes = task_notes(make_plan(load_suite(suite(path=one))))
    assert any("mine: only 20 of 140 texts are different" in note for note in notes)
    assert any(
        "all labels of dev are 'a', so accuracy there says nothing" in note for note in notes
    )


@pytest.mark.parametrize(
    ("rare", "fields", "metric"),
    [(0, {}, "accuracy"), (15, {}, "macro-F1"), (15, {"utility": "MCC"}, "MCC")],
)
def test_utility_is_by_the_classes_unless_the_task_says_it(tmp_path, rare, fields, metric):
    task = UserTask(name="mine", path=rows(300, rare), **fields)
    record, *_ = run(tmp_path, Untuned(), task=task, attacks=(), limit=300)
    assert record.utility_metric == metric
    assert {metric, *record.measures} == {"accuracy", "macro-F1", "MCC"}
    assert record.cell.utility == fields.get("utility")


def test_known_tasks_keep_accuracy_and_their_keys_unless_the_suite_says_another_metric(tmp_path):
    plain, chosen = (
        run(tmp_path / str(len(fields)), Untuned(), attacks=(), limit=24, **fields)[0]
        for fields in ({}, {"utility": "macro-F1"})
    )
    assert (plain.utility_metric, chosen.utility_metric) == ("accuracy", "macro-F1")
    assert plain.cell.utility is None
    assert plain.key != chosen.key
    assert chosen.measures["accuracy"] == plain.utility


def test_answers_of_chats_are_trained_and_evaluated(tmp_path):
    chats = [
        {
            "messages": [
                {"role": "user", "content": text},
                {"role": "assistant", "content": "call the agent"},
            ]
        }
        for text in rows().text
    ]
    path = tmp_path / "chats.jsonl"
    pd.DataFrame(chats).to_json(path, orient="records", lines=True)
    task = UserTask(name="chats", path=path)
    (record,) = run(
        tmp_path / "out",
        NoDefense(head="vendor"),
        task=task,
        model="tiny-gpt2",
        attacks=(),
        limit=24,
    )
    assert record.status == "ok", record.reason
    assert record.utility_metric == "ROUGE-L"
    assert "next-token accuracy" in record.measures
