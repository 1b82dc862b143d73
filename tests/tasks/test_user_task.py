"""The user's own files as a task."""

from __future__ import annotations

from collections import Counter

import pandas as pd
import pytest
from folders import failure, rows_of, write
from pydantic import ValidationError

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.suites.suite import load_suite
from leakboard.bench.tasks.loading import load_task
from leakboard.bench.tasks.user_task import SplitFiles, UserTask

TEXTS = [f'note {i}, "as written"' for i in range(200)]
MANY = "".join(f"row {i}\tb\n" for i in range(99))


def own(folder, name, content, **fields):
    (folder / name).write_text(content, "utf-8")
    return load_task(UserTask(name="mine", path=name, **fields), base=folder)


def test_lines_a_table_of_texts_and_a_table_without_its_labels_give_one_task(tmp_path):
    lines = own(tmp_path, "a.txt", "\n\n".join(TEXTS))
    table = own(tmp_path, "b.tsv", "\n".join(["text", *TEXTS]))
    wider = "\n".join(["body\ttopic", *(f"{text}\tx" for text in TEXTS)])
    unlabelled = own(tmp_path, "c.tsv", wider, text="body", label=None)
    assert lines.hash == table.hash == unlabelled.hash
    assert lines.objective == "language modelling"
    assert set(lines.splits) == {"train", "dev", "test", "auxiliary"}
    assert sum(map(len, lines.splits.values())) == len(TEXTS)
    for split in lines.splits.values():
        assert split.labels.tolist() == [0] * len(split)


def test_a_suite_says_in_one_line_that_there_are_no_labels(tmp_path):
    (tmp_path / "notes.tsv").write_text("\n".join(["text\tkind", *(f"{t}\tx" for t in TEXTS)]))
    path = tmp_path / "suite.yaml"
    path.write_text(
        "name: mine\ntask: {name: notes, path: notes.tsv, label: null}\ndefenses: [none]\n"
    )
    suite = load_suite(str(path))
    assert load_task(suite.task[0], base=suite.base).objective == "language modelling"


@pytest.mark.parametrize(
    ("name", "content", "fields", "message"),
    [
        ("a.txt", "", {}, "a.txt: the file is empty; expected one text per line"),
        ("a.txt", "\n \n", {}, "a.txt: the file is empty; expected one text per line"),
        ("a.txt", "one\ntwo\n", {}, "2 rows are too few: none fell into"),
        ("a.txt", MANY, {"label": "kind"}, "a.txt: no column 'kind'"),
        ("a.txt", "one\ntwo\n", {"text": "body"}, "a.txt: no column 'body'"),
        ("b.tsv", "text\tkind\n" + MANY, {}, "no column 'label' in its header line"),
        ("b.tsv", "text\tkind\n" + MANY, {}, "write label: null"),
        ("b.tsv", "texts\nfirst\n", {"label": None}, "no column 'text' in its header line"),
        ("b.tsv", "text\tkind\n\tb\n" + MANY, {"label": None}, "column 'text' is empty"),
    ],
)
def test_faulty_file_of_texts_says_what_is_wrong(tmp_path, name, content, fields, message):
    with pytest.raises(LeakboardError) as caught:
        own(tmp_path, name, content, **fields)
    assert message in str(caught.value)


def own_rows(n=200):
    return pd.DataFrame(
        {
            "body": [f'note {i}, "quoted"' for i in range(n)],
            "answer": [f"reply {i}" for i in range(n)],
            "kind": [["spam", "ham"][i % 2] for i in range(n)],
            "team": [["red", "", "blue"][i % 3] for i in range(n)],
        }
    )


OWN = {"name": "notes", "text": "body", "text2": "answer", "label": "kind", "attributes": ["team"]}


def test_own_csv_tsv_and_parquet_of_one_content_give_one_hash(tmp_path):
    frame = own_rows()
    frame.to_csv(tmp_path / "notes.csv", index=False)
    lines = ["\t".join(row) for row in frame.itertuples(index=False)]
    write(tmp_path, "notes", lines, "\t".join(frame.columns))
    frame.replace({"": None}).to_parquet(tmp_path / "notes.parquet")
    tasks = [
        load_task(UserTask(path=f"notes.{suffix}", **OWN), base=tmp_path)
        for suffix in ("csv", "tsv", "parquet")
    ]
    assert len({task.hash for task in tasks}) == 1
    assert tasks[0].labels == ("ham", "spam")
    assert tasks[0].attributes == {"team": ("blue", "red")}
    assert tasks[0].split("dev").pairs is not None
    assert -1 in tasks[0].split("train").attributes["team"]


def test_own_file_is_cut_by_text_so_that_equal_texts_share_a_split(tmp_path):
    pd.concat([own_rows(), own_rows()]).to_csv(tmp_path / "notes.csv", index=False)
    task = load_task(UserTask(path="notes.csv", **OWN), base=tmp_path)
    whole = Counter(text for split in task.splits.values() for text in split.texts)
    assert set(whole.values()) == {2}
    for split in task.splits.values():
        assert set(Counter(split.texts).values()) == {2}
    assert 20 < len(task.split("dev")) < 60


def test_own_folder_and_own_mapping_agree(tmp_path):
    for split, n in (("train", 50), ("dev", 20)):
        write(tmp_path / "mine", split, rows_of(n, len(split)))
    folder = load_task(UserTask(name="mine", path="mine"), base=tmp_path)
    files = {"train": "mine/train.tsv", "dev": "mine/dev.tsv"}
    mapping = load_task(UserTask(name="mine", path=SplitFiles(**files)), base=tmp_path)
    assert folder.hash == mapping.hash
    assert set(folder.splits) == {"train", "dev", "auxiliary"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": "boddy"}, "no column 'boddy' in its header line. Did you mean 'body'?"),
        ({"attributes": ["teams"]}, "no column 'teams' in its header line. Did you mean 'team'?"),
        ({"path": "note.csv"}, "note.csv: no such file"),
        ({"path": "notes.xlsx"}, "unknown kind of file"),
        ({"label": "body", "path": "few.csv"}, "3 rows are too few: none fell into"),
        ({"label": "same"}, "has only the value 'x'; expected at least two labels"),
        ({"path": "fake.parquet"}, "not a readable Parquet file"),
    ],
)
def test_faulty_own_task_says_what_is_wrong(tmp_path, change, message):
    own_rows().assign(same="x").to_csv(tmp_path / "notes.csv", index=False)
    own_rows(3).to_csv(tmp_path / "few.csv", index=False)
    (tmp_path / "notes.xlsx").write_bytes(b"x")
    (tmp_path / "fake.parquet").write_bytes(b"x")
    task = UserTask(**(OWN | {"path": "notes.csv"} | change))
    assert message in failure(None, task, base=tmp_path)


def test_own_csv_with_a_ragged_line_names_it(tmp_path):
    (tmp_path / "notes.csv").write_text('text,label\n"a, b",x\nc\n')
    task = UserTask(name="notes", path="notes.csv")
    assert "notes.csv, line 3: 1 fields" in failure(None, task, base=tmp_path)


@pytest.mark.parametrize(
    "fields", [{"name": "sst2"}, {"name": "reviews"}, {"name": "a/b"}, {"lable": "x"}]
)
def test_own_task_refuses_taken_names_and_unknown_keys(fields):
    with pytest.raises(ValidationError):
        UserTask(**({"name": "mine", "path": "x.csv"} | fields))
