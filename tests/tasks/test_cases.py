"""Files as people bring them, each with what is right for it. All texts are made up here.

The public discussions named are where people met the same thing.
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
from collections import Counter
from types import SimpleNamespace

import datasets
import numpy as np
import pandas as pd
import pytest

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.tasks import readers
from leakboard.bench.tasks.loading import load_task
from leakboard.bench.tasks.readers import read_table
from leakboard.bench.tasks.table import bucket
from leakboard.bench.tasks.user_task import UserTask

FORM = "Sent from the customer portal of the northern branch, do not reply to this address. "
THINGS = ("kettle", "ladder", "mirror", "socket", "carpet", "window", "bottle", "helmet")


def texts(n, start=0):
    rng = np.random.default_rng(start)
    words = [f"{a}{b}" for a in ("ba", "ko", "li", "me", "su") for b in THINGS]
    return [f"{' '.join(rng.choice(words, 9))} {i}" for i in range(start, start + n)]


def frame(n=200, start=0, labels=("minor", "urgent")):
    return pd.DataFrame(
        {"note": texts(n, start), "level": [labels[i % len(labels)] for i in range(n)]}
    )


def load(path, base=None, **fields):
    given = {"name": "brought", "text": "note", "label": "level"} | fields
    return (
        load_task(UserTask(path=path, **given), base=base)
        if base
        else load_task(UserTask(path=path, **given))
    )


def told(path, **fields):
    with pytest.raises(LeakboardError) as caught:
        load(path, **fields)
    return str(caught.value)


def sizes(task):
    return {name: len(split) for name, split in task.splits.items()}


PLAIN = load(frame()).hash


# Delimiters, quotes, encodings


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_that_of_the_header_line(tmp_path, name, delimiter):
    """A .csv of a European spreadsheet has semicolons (langgenius/dify 42354)."""
    frame().to_csv(tmp_path / name, sep=delimiter, index=False)
    assert load(tmp_path / name).hash == PLAIN


def test_a_first_line_may_name_the_delimiter(tmp_path):
    """sep=; is what Excel writes and reads (shancarter/mr-data-converter 52)."""
    path = tmp_path / "a.csv"
    path.write_text("sep=;\n" + frame().to_csv(sep=";", index=False))
    assert load(path).hash == PLAIN
    path.write_text("sep=;\nnote;level\nsome words\n")
    assert "line 3: 1 fields, but the header has 2" in told(path)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
def test_a_mark_tells_the_encoding(tmp_path, encoding):
    """Excel saves "Unicode text" as UTF-16 with tabs (HKUDS/Vibe-Trading 862)."""
    path, text = tmp_path / "a.tsv", frame().to_csv(sep="\t", index=False)
    path.write_bytes(("\ufeff" * (encoding == "utf-16-le") + text).encode(encoding))
    assert load(path).hash == PLAIN


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_on_any_machine(tmp_path, end):
    text = frame().to_csv(index=False, lineterminator=end)
    (tmp_path / "a.csv").write_bytes(text.encode())
    assert load(tmp_path / "a.csv").hash == PLAIN


def test_quotes_tabs_and_line_breaks_of_a_quoted_tsv_are_read_as_pandas_wrote_them(tmp_path):
    data = frame()
    data["note"] = [f'He said "{t}"\nand\tleft' if i % 3 else t for i, t in enumerate(data["note"])]
    data.to_csv(tmp_path / "a.tsv", sep="\t", index=False)
    found = read_table(tmp_path / "a.tsv")
    assert found.column("note") == data["note"].tolist()
    assert found.place(1) == f"{tmp_path / 'a.tsv'}, line 3"
    assert found.place(3) == f"{tmp_path / 'a.tsv'}, line 7"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (['"done"', "fine"], ['"done"', "fine"]),  # a field in quotes without a need is text
        (['"a, b"', "fine"], ["a, b", "fine"]),  # each field with a comma is quoted: a spreadsheet
        (['"a, b"', "c, d"], ['"a, b"', "c, d"]),
        (['he said "no', "fine"], ['he said "no', "fine"]),
        (['"a ""b"" c"', "fine"], ['a "b" c', "fine"]),
    ],
)
def test_quotes_in_a_tsv_are_those_of_its_writer(tmp_path, fields, expected):
    path = tmp_path / "a.tsv"
    path.write_text("note\tlevel\n" + "".join(f"{field}\tx\n" for field in fields))
    assert read_table(path).column("note") == expected


def test_a_tsv_that_is_quoted_in_one_line_and_not_in_another_is_refused(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text('note\tlevel\n"a ""b"" c"\tx\nhe said "no\ty\n')
    message = told(path)
    assert f"{path}, line 2: the field looks quoted" in message
    assert "line 3 has quotes that are not; save the file as CSV or Parquet" in message


def test_a_quote_that_is_escaped_by_a_backslash_is_refused_with_the_remedy(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('note,level\nfine,x\n"he said \\"no\\", and left",y\n')
    message = told(path)
    assert f"{path}, line 3" in message
    assert "quotes in it are doubled" in message


def test_a_text_longer_than_the_limit_of_the_library_is_read(tmp_path):
    """field larger than field limit (131072) (biolab/orange3 2404)."""
    data = frame()
    data.loc[5, "note"] = "word " * 60_000
    data.to_csv(tmp_path / "a.csv", index=False)
    assert max(map(len, read_table(tmp_path / "a.csv").column("note"))) == 300_000


# JSON lines


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.json"])
def test_json_has_the_content_of_a_table(tmp_path, name):
    records = frame().to_dict("records")
    lines = "".join(
        json.dumps(one, ensure_ascii=i % 2 == 0) + "\n" for i, one in enumerate(records)
    )
    content = json.dumps(records) if name == "a.json" else lines
    data = content.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert load(tmp_path / name).hash == PLAIN


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 3: not JSON"),
        ("[1]", "line 3: expected a JSON object"),
        ("[" * 100_000, "line 3: not JSON"),
        ('{"note": "a\\u0000b", "level": "x"}', "line 3: contains a NUL"),
        ('{"note": "a\\ud83d", "level": "x"}', "line 3: contains half of a surrogate pair"),
        ('{"note": ["x"], "level": "x"}', "line 3: column 'note' holds a list; expected one value"),
        ('{"note": {"x": 1}, "level": "x"}', "line 3: column 'note' holds a record"),
        ('{"level": "x"}', "line 3: column 'note' is empty"),
    ],
)
def test_a_line_that_is_no_record_is_named(tmp_path, line, message):
    path = tmp_path / "a.jsonl"
    good = [json.dumps(row) + "\n" for row in frame(300).to_dict("records")]
    path.write_text(good[0] + "\n" + line + "\n" + "".join(good[1:]))
    assert f"{path}, {message}" in told(path)


# Labels


def test_a_row_without_a_label_is_left_out_and_named_by_its_line(tmp_path):
    data = frame()
    data.loc[[30, 31, 90, 120], "level"] = ""
    data.to_csv(tmp_path / "a.csv", index=False)
    task = load(tmp_path / "a.csv")
    assert sum(sizes(task).values()) == 196
    note = " ".join(task.notes)
    places = [f"{tmp_path / 'a.csv'}, line {row + 2}" for row in (30, 31, 90, 120)]
    assert sum(place in note for place in places) >= 1
    assert "no label and are left out" in note


@pytest.mark.parametrize("hidden", ["-1", ""])
def test_a_test_without_labels_is_not_used(tmp_path, hidden):
    labels = ("0", "1")
    for split, n in (("train", 100), ("validation", 40), ("test", 30)):
        data = frame(n, len(split) * 1000, labels)
        if split == "test":
            data["level"] = hidden
        data.to_csv(tmp_path / f"{split}.csv", index=False)
    task = load(tmp_path)
    assert set(task.splits) == {"train", "dev", "auxiliary"}
    assert any("none of 30 rows has a label; the split 'test' is not used" in n for n in task.notes)


def test_minus_one_among_the_labels_of_train_is_a_label(tmp_path):
    task = load(frame(labels=("-1", "0", "1")))
    assert task.labels == ("-1", "0", "1")
    assert any("-1 in column 'level' is taken as a label" in note for note in task.notes)


@pytest.mark.parametrize("other", ["Urgent", "urgent ", "URGENT"])
def test_labels_that_differ_by_case_or_blanks_are_named(tmp_path, other):
    data = frame()
    data.loc[17, "level"] = other
    data.to_csv(tmp_path / "a.csv", index=False)
    message = told(tmp_path / "a.csv")
    assert f"{tmp_path / 'a.csv'}, line 19: the label '{other}'" in message
    assert "differs from 'urgent' (99 rows) only by case or blanks; use one spelling" in message


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ((1.0, 0.0), ("0", "1")),
        ((True, False), ("False", "True")),
        ((1, np.nan, 0), ("0", "1")),
        ((b"low", b"high"), ("high", "low")),
        (("1.0", "0.0"), ("0", "1")),
    ],
)
def test_labels_of_any_type_are_taken_as_written(tmp_path, values, labels):
    """Labels come back as floats once a row has none (asreview/asreview 1636)."""
    data = frame(labels=values)
    data.to_parquet(tmp_path / "a.parquet")
    assert load(data).labels == load(tmp_path / "a.parquet").labels == labels
    assert load(data).hash == load(tmp_path / "a.parquet").hash


def test_categories_and_named_classes_of_the_hub_are_taken_by_name(tmp_path):
    data = frame()
    named = datasets.Dataset.from_pandas(data).class_encode_column("level")
    named.to_parquet(tmp_path / "a.parquet")
    category = data.astype({"level": "category"})
    category.to_parquet(tmp_path / "b.parquet")
    for given in (category, named, tmp_path / "a.parquet", tmp_path / "b.parquet"):
        assert load(given).hash == PLAIN


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([["x"], ["y", "z"]], "holds a list; expected one value"),
        ([{"x": 1}, {"x": 2}], "holds a record; expected one value"),
        (
            [0.11 + i * 0.37 for i in range(200)],
            "numbers with fractions; write objective: regression",
        ),
        ([f"label {i}" for i in range(200)], "expected a few classes, each with several rows"),
        ([b"\xff\xfe", b"a"], "holds bytes that are not UTF-8"),
        ([SimpleNamespace(), "a"], "holds a SimpleNamespace; expected text"),
    ],
)
def test_labels_that_are_none_are_refused(values, message):
    """Numbers with fractions were cut to whole ones (EducationalTestingService/skll 285)."""
    data = frame()
    data["level"] = (values * 200)[:200]
    assert message in told(data)


def test_a_class_of_few_rows_stays_in_train_and_is_named():
    data = frame(400)
    buckets = [bucket(note) for note in data["note"]]
    rows = sorted(buckets.index(each) for each in (0, 1, 2))  # of test, dev and train
    data.loc[rows, "level"] = "legal"
    task = load(data)
    train = task.split("train")
    legal = task.labels.index("legal")
    assert {text for text, own in zip(train.texts, train.labels, strict=True) if own == legal} == {
        data["note"][row] for row in rows
    }
    places = ", ".join(str(row + 1) for row in rows)
    assert any(
        "the class 'legal' has 3 rows in train" in n and f"row {places}" in n for n in task.notes
    )


# Sources


@pytest.mark.parametrize("where", ["all", "train", "half"])
def test_a_sentence_that_many_texts_share_leaves_train_and_public_text(tmp_path, where):
    """A contact form, a system prompt, an instruction template (huggingface/transformers 26334)."""
    for split, n in (("train", 300), ("dev", 60)):
        data = frame(n, len(split) * 1000)
        shared = {
            "all": slice(None),
            "train": slice(None if split == "train" else 0),
            "half": slice(150),
        }
        data.loc[data.index[shared[where]], "note"] = FORM + data["note"]
        data.to_csv(tmp_path / f"{split}.csv", index=False)
    task = load(tmp_path)
    assert 230 <= sizes(task)["train"] <= 250
    assert 50 <= sizes(task)["auxiliary"] <= 70
    assert "such as a form" in " ".join(task.notes)
    held = [text.startswith(FORM.strip()) for text in task.split("auxiliary").texts]
    assert np.mean(held) > 0.3 if where == "half" else all(held)


def test_a_single_source_leaves_train_whole():
    data = frame(20)
    data["note"] = "the same words in every row"
    task = load({"train": data, "dev": frame(30, 500)})
    assert sizes(task)["train"] == 20
    assert any("there is no public text" in note for note in task.notes)


def test_a_source_of_most_texts_is_not_public():
    data, others = frame(60), frame(10, 500)
    data.loc[:49, "note"] = "the same words in every row"
    data.loc[50:, "note"] = others["note"].to_numpy()
    assert sizes(load({"train": data, "dev": others}))["train"] == 60


def test_one_question_asked_of_every_text_links_none_of_them():
    data = frame().assign(question="Is this urgent?")
    assert sizes(load(data, text2="question"))["auxiliary"] > 20
    whole = data.assign(
        question="Read the note above and say in one word whether it is urgent or not"
    )
    assert sizes(load(whole, text2="question"))["auxiliary"] > 20


def test_texts_cut_from_one_another_are_of_one_source_beside_a_form():
    whole = texts(60)
    data = pd.DataFrame(
        {
            "note": [FORM + text for text in whole for _ in range(2)],
            "level": ["a", "b"] * 60,
        }
    )
    data["note"] = [t if i % 2 else t.rsplit(" ", 1)[0] for i, t in enumerate(data["note"])]
    task = load({"train": data, "dev": frame(labels=("a", "b"), start=5000)})
    stems = [
        {
            text.removesuffix(text.split(" ")[-1]) if text[-1].isdigit() else text + " "
            for text in split.texts
        }
        for split in (task.split("train"), task.split("auxiliary"))
    ]
    assert stems[1]
    assert not stems[0] & stems[1]


def test_duplicates_across_splits_are_named():
    data = frame()
    task = load({"train": data, "validation": pd.concat([frame(50, 900), data[:10]])})
    assert any(
        "10 of 60 examples of dev are duplicates of examples of train" in n for n in task.notes
    )


# Splits


@pytest.mark.parametrize("name", ["dev", "validation", "valid", "val"])
def test_the_split_dev_has_the_names_that_the_hub_gives_it(tmp_path, name):
    frame(100).to_csv(tmp_path / "train.csv", index=False)
    frame(40, 500).to_csv(tmp_path / f"{name}.csv", index=False)
    files = {"train": tmp_path / "train.csv", name: tmp_path / f"{name}.csv"}
    assert load(tmp_path).hash == load(files).hash
    assert sizes(load(tmp_path))["dev"] == 40


def test_two_files_that_mean_the_same_split_are_refused(tmp_path):
    for name in ("train", "dev", "val"):
        frame(100).to_csv(tmp_path / f"{name}.csv", index=False)
    assert "dev.csv and val.csv both exist for the split 'dev'; keep one" in told(tmp_path)


def test_a_folder_without_dev_has_a_tenth_of_train_as_dev(tmp_path):
    for name, start in (("train", 0), ("test", 900)):
        frame(200, start).to_csv(tmp_path / f"{name}.csv", index=False)
    task = load(tmp_path)
    assert sizes(task)["test"] == 200
    assert 5 < sizes(task)["dev"] < 40
    assert any("a tenth of train" in note for note in task.notes)


def test_shards_lists_and_patterns_are_one_split(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    whole = frame()
    whole[:120].to_parquet(folder / "train-00000-of-00002.parquet")
    whole[120:].to_parquet(folder / "train-00001-of-00002.parquet")
    frame(40, 500).to_parquet(folder / "validation-00000-of-00001.parquet")
    single = load({"train": whole, "dev": frame(40, 500)}).hash
    assert load(tmp_path).hash == load(folder).hash == single
    parts = sorted(folder.glob("train-*"))
    dev = folder / "validation-00000-of-00001.parquet"
    assert load({"train": parts, "dev": dev}).hash == single
    assert load({"train": "data/train-*", "dev": dev}, base=tmp_path).hash == single
    assert load(parts).hash == load("data/train*.parquet", base=tmp_path).hash == PLAIN
    assert "no such file" in told(tmp_path / "trian-*.csv")


def test_files_of_one_split_with_other_columns_are_refused(tmp_path):
    frame().to_csv(tmp_path / "a.csv", index=False)
    frame().rename(columns={"level": "grade"}).to_csv(tmp_path / "b.csv", index=False)
    assert "b.csv: has the columns note, grade, and" in told(
        [tmp_path / "a.csv", tmp_path / "b.csv"]
    )


def test_a_list_of_records_that_is_too_large_is_refused_before_it_is_parsed(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "LARGEST_LIST", 1000)
    path = tmp_path / "a.json"
    path.write_text(json.dumps(frame().to_dict("records")))
    assert "write one object on each line (.jsonl)" in told(path)


def test_a_row_of_a_second_file_is_named_by_that_file(tmp_path):
    frame().to_csv(tmp_path / "a.csv", index=False)
    data = frame(60, 500)
    data.loc[7, "note"] = " "
    data.to_json(tmp_path / "b.jsonl", orient="records", lines=True)
    message = told([tmp_path / "a.csv", tmp_path / "b.jsonl"])
    assert f"{tmp_path / 'b.jsonl'}, line 8: column 'note' is empty" in message


# Frames and datasets


def test_frames_and_datasets_have_the_content_of_files(tmp_path):
    data = datasets.Dataset.from_pandas(frame())
    assert load(data).hash == load(data.select(range(200))).hash == PLAIN
    parts = data.train_test_split(0.2, seed=0)
    parts["validation"] = parts.pop("test")
    assert load(parts).hash == load({name: part.to_pandas() for name, part in parts.items()}).hash


def test_what_save_to_disk_wrote_is_read(tmp_path):
    """A folder of save_to_disk is none of files (huggingface/datasets 7018, hiyouga/LlamaFactory 5521)."""
    data = datasets.Dataset.from_pandas(frame())
    data.class_encode_column("level").save_to_disk(tmp_path / "one")
    assert load(tmp_path / "one").hash == PLAIN
    both = datasets.DatasetDict(train=data, validation=datasets.Dataset.from_pandas(frame(40, 500)))
    both.save_to_disk(tmp_path / "two", num_shards={"train": 3, "validation": 1})
    assert load(tmp_path / "two").hash == load(both).hash
    (tmp_path / "two" / "train" / "state.json").write_text(
        '{"_data_files": [{"filename": "../x"}]}'
    )
    assert "expected the names of data files" in told(tmp_path / "two")


def test_an_address_of_the_hub_is_loaded_by_datasets(monkeypatch):
    asked = []

    def load_dataset(repo, config, revision):
        asked.append((repo, config, revision))
        return {"train": frame(), "validation": frame(40, 500)}

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    assert sizes(load("hf://datasets/some/notes@v2/plain"))["dev"] == 40
    assert asked == [("some/notes", "plain", "v2")]
    assert "expected hf://datasets/OWNER/NAME" in told("hf://models/some/notes")


def test_a_dataset_without_a_number_of_rows_is_refused():
    data = datasets.Dataset.from_pandas(frame()).to_iterable_dataset()
    assert "an iterable dataset has no known number of rows" in told(data)


# Chats


def chats(n=120, system=None):
    rows = []
    for i, text in enumerate(texts(n)):
        turns = [
            ("user", text),
            ("assistant", f"Noted, {i}."),
            ("user", "And?"),
            ("assistant", f"Done {i}."),
        ]
        if system:
            turns.insert(0, ("system", system))
        rows.append({"messages": [{"role": role, "content": said} for role, said in turns]})
    return rows


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def chat_task(path):
    return load_task(UserTask(name="chats", path=path))


def test_each_answer_of_a_chat_is_learnt_behind_what_stands_before_it(tmp_path):
    """All answers, or the last one? (huggingface/trl 1282)"""
    task = chat_task(write_lines(tmp_path / "a.jsonl", chats()))
    assert task.objective == "language modelling"
    assert sum(sizes(task).values()) == 240
    pairs = {
        pair: text
        for split in task.splits.values()
        for text, pair in zip(split.texts, split.pairs, strict=True)
    }
    assert pairs["Noted, 7."] == f"<|user|> {texts(8)[7]} <|assistant|>"
    assert pairs["Done 7."] == f"{pairs['Noted, 7.']} Noted, 7. <|user|> And? <|assistant|>"
    for split in task.splits.values():  # a conversation is on one side
        assert set(Counter(pair.split(" ")[-1] for pair in split.pairs).values()) == {2}
    assert any("120 conversations have 240 answers" in note for note in task.notes)


def test_a_system_prompt_that_all_chats_share_leaves_train_and_public_text(tmp_path):
    rows = chats(
        system="You are a careful assistant of the northern branch and answer in one line only."
    )
    found = sizes(chat_task(write_lines(tmp_path / "a.jsonl", rows)))
    assert found["train"] > 100
    assert found["auxiliary"] > 15


def test_other_spellings_of_a_chat_mean_the_same(tmp_path):
    """Roles are human and gpt, contents `value` (unslothai/unsloth 321)."""
    spelled = {"user": "human", "assistant": "gpt"}
    rows = chats()
    other = [
        {
            "conversations": [
                {"from": spelled[m["role"]], "value": m["content"]} for m in row["messages"]
            ]
        }
        for row in rows
    ]
    one = chat_task(write_lines(tmp_path / "a.jsonl", rows)).hash
    assert chat_task(write_lines(tmp_path / "b.jsonl", other)).hash == one
    pd.DataFrame(rows).to_parquet(tmp_path / "c.parquet")
    assert chat_task(tmp_path / "c.parquet").hash == one
    parts = [
        {
            "messages": [
                m | {"content": [{"type": "text", "text": m["content"]}]} for m in row["messages"]
            ]
        }
        for row in rows
    ]
    assert chat_task(write_lines(tmp_path / "d.jsonl", parts)).hash == one


@pytest.mark.parametrize("listed", [False, True])
def test_prompts_with_completions_are_chats_of_one_answer(tmp_path, listed):
    def said(role, text):
        return [{"role": role, "content": text}] if listed else text

    rows = [
        {"prompt": said("user", text), "completion": said("assistant", f"Noted {i}.")}
        for i, text in enumerate(texts(150))
    ]
    task = chat_task(write_lines(tmp_path / "a.jsonl", rows))
    split = task.split("train")
    assert split.texts[0].startswith("<|user|> ")
    assert split.pairs[0].startswith("Noted ")


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([], "column 'messages' must be a list"),
        ([{"role": "usr", "content": "a"}], "unknown role 'usr'. Did you mean 'user'?"),
        ([{"role": "user", "content": "a"}], "no message of the role 'assistant'"),
        ([{"role": "assistant", "content": "a"}], "no message of the role 'assistant' after"),
        ([{"role": "user", "content": None}], "message 1: 'content' must be text, got nothing"),
        (
            [{"role": "user", "content": "a <|system|> b"}],
            "holds <|system|>, which separates messages",
        ),
        (["a"], 'message 1: must be {"role", "content"}'),
    ],
)
def test_a_chat_that_is_none_is_named_by_its_line(tmp_path, messages, message):
    rows = chats(30)
    rows[4] = {"messages": messages}
    path = write_lines(tmp_path / "a.jsonl", rows)
    with pytest.raises(LeakboardError) as caught:
        chat_task(path)
    assert f"{path}, line 5" in str(caught.value)
    assert message in str(caught.value)


# Languages

TONGUES = {
    "Chinese": "这台机器昨天晚上突然停止工作请尽快派人来检查",
    "Arabic": "توقفت الآلة عن العمل أمس مساءً، يرجى إرسال فني",
    "emoji": "the machine 🙃 stopped 👩🏽‍🔧 again ❤️‍🔥",
    "Hindi": "मशीन कल रात अचानक रुक गई कृपया जाँच करें",
}


@pytest.mark.parametrize("tongue", TONGUES)
def test_every_reader_keeps_every_language(tmp_path, tongue):
    data = frame()
    data["note"] = [f"{TONGUES[tongue]} {i}" for i in range(len(data))]
    data["level"] = [("紧急", "عادي")[i % 2] for i in range(len(data))]
    data.to_csv(tmp_path / "a.csv", index=False)
    data.to_csv(tmp_path / "a.tsv", sep="\t", index=False, quoting=csv.QUOTE_NONE)
    data.to_csv(tmp_path / "b.tsv", sep="\t", index=False, encoding="utf-16")
    data.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    data.to_json(tmp_path / "b.jsonl", orient="records", lines=True, force_ascii=False)
    data.to_parquet(tmp_path / "a.parquet")
    names = ("a.csv", "a.tsv", "b.tsv", "a.jsonl", "b.jsonl", "a.parquet")
    for name in names:
        assert read_table(tmp_path / name).column("note") == data["note"].tolist()
    found = {load(tmp_path / name).hash for name in names} | {load(data).hash}
    assert len(found) == 1
