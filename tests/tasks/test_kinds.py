"""Files as tools write them: what is read, and what is refused because it would mean something else."""

from __future__ import annotations

import json
import random

import pandas as pd
import pytest

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.tasks import UserTask, load_task

SEED = random.Random(0)
TEXTS = [
    f"case {i}: the {SEED.choice(['order', 'parcel', 'login'])} at desk {SEED.randrange(99)}"
    for i in range(120)
]
LABELS = [("pos", "neg")[i % 2] for i in range(120)]
ROWS = [*zip(TEXTS, LABELS, strict=True)]
FRAME = pd.DataFrame({"text": TEXTS, "label": LABELS})


def lines(path, records):
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")


def index(path):
    """`DataFrame.to_csv` without index=False: a first column without a name (pandas)."""
    FRAME.to_csv(path)


def semicolons(path):
    """A European Excel that saves with semicolons, as UTF-16 (Microsoft Excel)."""
    FRAME.to_csv(path, sep=";", encoding="utf-16", index=False)


def trailing(path):
    """Delimiters for columns that once had a value (LibreOffice and Excel)."""
    path.write_text("text,label,,\n" + "\n".join(f'"{t}",{label},,' for t, label in ROWS))


def annotation_tool(path):
    """The full JSON export: texts and choices are nested (Label Studio)."""
    path.write_text(
        json.dumps(
            [
                {
                    "id": i,
                    "data": {"text": text},
                    "annotations": [{"result": [{"value": {"choices": [label]}}]}],
                }
                for i, (text, label) in enumerate(ROWS)
            ]
        )
    )


def annotation_rows(path):
    """The export JSON-MIN, with columns of its own beside the label (Label Studio)."""
    records = [{"id": i, "text": t, "label": x, "lead_time": 2.5} for i, (t, x) in enumerate(ROWS)]
    path.write_text(json.dumps(records))


def lists_of_one(path):
    """Text classification as JSONL: each label is a list (doccano)."""
    lines(path, [{"id": i, "text": t, "label": [x]} for i, (t, x) in enumerate(ROWS)])


def truth_values(path):
    """Booleans, which JSON has and CSV has not (json.dumps)."""
    lines(path, [{"text": t, "label": x} for t, x in ROWS])


FIELDS = {"text": "data.text", "label": "annotations.0.result.0.value.choices.0"}
READ = {
    "a.csv": (index, {}),
    "excel.csv": (semicolons, {}),
    "trailing.csv": (trailing, {}),
    "export.json": (annotation_tool, FIELDS),
    "rows.json": (annotation_rows, {}),
    "doccano.jsonl": (lists_of_one, {}),
    "plain.jsonl": (truth_values, {}),
}


@pytest.mark.parametrize("name", READ)
def test_what_tools_write_has_the_texts_and_labels_that_went_in(tmp_path, name):
    write, fields = READ[name]
    write(tmp_path / name)
    task = load_task(UserTask(name="mine", path=tmp_path / name, **fields))
    found = {
        (text, task.labels[label])
        for split in task.splits.values()
        for text, label in zip(split.texts, split.labels.tolist(), strict=True)
    }
    assert found == {*ROWS}


CALL = {"id": "1", "type": "function", "function": {"name": "find", "arguments": '{"q": 7}'}}


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ({"content": None, "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "1"}),
        ({"function_call": CALL["function"]}, {"role": "function", "name": "find"}),
    ],
)
def test_calls_of_tools_are_part_of_the_prompt_and_not_learnt(tmp_path, call, answer):
    """Fine-tuning data with tools and with functions, whose messages have no content (OpenAI)."""
    chats = [
        [
            {"role": "user", "content": text},
            {"role": "assistant", **call},
            {"content": "42", **answer},
            {"role": "assistant", "content": f"It is {label}."},
        ]
        for text, label in ROWS
    ]
    records = [{"messages": chat, "tools": [CALL], "parallel_tool_calls": False} for chat in chats]
    lines(tmp_path / "tools.jsonl", records)
    train = load_task(UserTask(name="mine", path=tmp_path / "tools.jsonl")).splits["train"]
    assert {*train.pairs} == {"It is pos.", "It is neg."}
    assert train.texts[0].endswith('<|assistant|> find({"q": 7}) <|tool|> 42 <|assistant|>')


def test_an_instruction_is_read_with_what_it_is_about(tmp_path):
    """instruction, input, output; many inputs are empty (Stanford Alpaca)."""
    records = [
        {"instruction": f"Summarise {i}.", "input": text if i % 2 else "", "output": "short"}
        for i, text in enumerate(TEXTS)
    ]
    (tmp_path / "alpaca.json").write_text(json.dumps(records))
    task = load_task(UserTask(name="mine", path=tmp_path / "alpaca.json"))
    texts = {text for split in task.splits.values() for text in split.texts}
    assert f"<|user|> Summarise 1. {TEXTS[1]} <|assistant|>" in texts
    assert "<|user|> Summarise 0. <|assistant|>" in texts


def test_questions_and_their_first_answers_are_prompts_and_answers(tmp_path):
    """Answers are lists in a record (SQuAD)."""
    lines(tmp_path / "qa.jsonl", [{"question": t, "answers": {"text": [x]}} for t, x in ROWS])
    fields = {"text": "question", "text2": "answers.text.0", "label": None}
    train = load_task(UserTask(name="mine", path=tmp_path / "qa.jsonl", **fields)).splits["train"]
    assert {*train.pairs} == {"pos", "neg"}


def test_scores_of_categories_are_flags(tmp_path):
    """cats: one score of 0 or 1 for each category (spaCy and Prodigy)."""
    cats = [{"POS": float(x == "pos"), "NEG": float(x != "pos")} for x in LABELS]
    lines(tmp_path / "p.jsonl", [{"text": t, "cats": c} for t, c in zip(TEXTS, cats, strict=True)])
    task = load_task(
        UserTask(name="mine", path=tmp_path / "p.jsonl", label=["cats.POS", "cats.NEG"])
    )
    assert task.labels == ("cats.NEG", "cats.POS")
    with pytest.raises(LeakboardError, match=r"holds a record.* such as 'cats\.POS'"):
        load_task(UserTask(name="mine", path=tmp_path / "p.jsonl", label="cats"))
    with pytest.raises(LeakboardError, match=r"no column 'POS'.*cats\.POS"):
        load_task(UserTask(name="mine", path=tmp_path / "p.jsonl", label="POS"))


def test_labels_of_fasttext_are_not_trained_on_as_words(tmp_path):
    """__label__pos in front of each text (fastText)."""
    (tmp_path / "train.txt").write_text("\n".join(f"__label__{x} {t}" for t, x in ROWS))
    with pytest.raises(
        LeakboardError, match="all texts begin with __label__, the format of fastText"
    ):
        load_task(UserTask(name="mine", path=tmp_path / "train.txt"))
    task = load_task(UserTask(name="mine", path=tmp_path / "train.txt", label=None))
    assert task.objective == "language modelling"


def test_a_class_that_may_be_a_missing_label_is_named(tmp_path):
    """write.csv writes NA (R), and to_csv with na_rep does (pandas)."""
    labels = [None if i % 9 == 0 else label for i, label in enumerate(LABELS)]
    FRAME.assign(label=labels).to_csv(tmp_path / "r.csv", na_rep="NA", index=False)
    task = load_task(UserTask(name="mine", path=tmp_path / "r.csv"))
    assert "NA" in task.labels
    assert any("'NA' in column 'label' is a class like others" in note for note in task.notes)


@pytest.mark.parametrize("text", [",\n".join(['{"text": "a"}'] * 3), '{"data":\n [{"text": "a"}]}'])
def test_json_that_is_neither_lines_nor_a_list_is_refused_with_both(tmp_path, text):
    """Lines of a list without brackets, and one object over many lines (jq, json.dumps(indent=1))."""
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(
        LeakboardError, match=r"line 1: not JSON.* on each line, or a list of objects"
    ):
        load_task(UserTask(name="mine", path=tmp_path / "a.json"))
