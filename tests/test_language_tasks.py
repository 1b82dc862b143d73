"""Tasks of language modelling: dialogues with marked secrets, WikiText-2, the user's own texts."""

import gzip
import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import datasets
import pytest

from bench.contracts.errors import LeakboardError
from bench.suites.suite import load_suite
from bench.tasks.dialogues import KINDS, SIZES, WORDS, dialogues
from bench.tasks.loading import load_task
from bench.tasks.own import OwnTask
from bench.tasks.table import read_table

ROOT = Path(__file__).parents[1]
HASH = "fc8147b1ad6293d7e5c6baaf0fc68c9c63cc06b9c7e7bb474c642b35f64ab8f9"
LOOKS = {
    "account": r"[1-9]\d{7}",
    "address": r"\d+ .+, .+, [A-Z]{2} \d{5}",
    "date": r"[A-Z][a-z]+ \d{1,2}, 202[1-5]",
    "email": r"\S+@example\.(com|net|org)",
    "name": r"[A-Z]\w+ [A-Z]\w+",
    "order": r"[A-Z]{2}-[1-9]\d{5}",
    "phone": r"[1-9]\d\d-[1-9]\d\d-\d{4}",
}


def secrets_of(split):
    """Kind and value of every secret."""
    return {
        (span.kind, text[span.start : span.end])
        for text, spans in zip(split.texts, split.secrets, strict=True)
        for span in spans
    }


# Dialogues


@pytest.mark.skipif(
    f"faker=={version('faker')}" not in (ROOT / "constraints.txt").read_text().lower(),
    reason="another version of Faker knows other names than the pinned one",
)
@pytest.mark.parametrize("hash_seed", ["0", "1234"])
def test_dialogues_are_the_same_in_every_process(hash_seed):
    code = "from bench.tasks.task.dialogues import dialogues; print(dialogues().hash)"
    env = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == dialogues().hash == HASH


def test_spans_hold_a_secret_of_their_kind_and_nothing_around_it():
    found = set()
    for split in dialogues().splits.values():
        for text, spans in zip(split.texts, split.secrets, strict=True):
            assert spans, text
            assert all(a.end < b.start for a, b in pairwise(spans))
            for span in spans:
                assert re.fullmatch(LOOKS[span.kind], text[span.start : span.end])
                assert not text[max(span.start - 1, 0) : span.start].isalnum()
                assert not text[span.end : span.end + 1].isalnum()
                found.add(span.kind)
    assert found == set(KINDS.values()) == set(LOOKS)


def test_no_number_and_no_address_stands_outside_the_marked_places():
    for split in dialogues().splits.values():
        for text, spans in zip(split.texts, split.secrets, strict=True):
            rest = list(text)
            for span in spans:
                rest[span.start : span.end] = "_" * (span.end - span.start)
            assert not set("".join(rest)) & set("0123456789@{}\n\t")


def test_no_secret_of_the_public_half_is_one_of_the_private_half():
    splits = dialogues().splits
    public = secrets_of(splits["auxiliary"])
    private = set().union(*(secrets_of(splits[name]) for name in ("train", "dev", "test")))
    assert {kind for kind, _ in public} == {kind for kind, _ in private} == set(LOOKS)
    assert not public & private


def test_no_dialogue_occurs_twice_and_all_are_short_lines_of_two_to_six_turns():
    task = dialogues()
    assert task.objective == "language modelling"
    assert {name: len(split) for name, split in task.splits.items()} == SIZES
    texts = [text for split in task.splits.values() for text in split.texts]
    assert len(set(texts)) == len(texts)
    turns = [re.findall(r"(?:^| )(Customer|Agent): ", text) for text in texts]
    assert {len(one) for one in turns} == {2, 3, 4, 5, 6}
    assert all(one == (["Customer", "Agent"] * 3)[: len(one)] for one in turns)
    assert all(text.isascii() and len(text.split()) in WORDS for text in texts)


def test_a_value_is_kept_through_its_dialogue():
    repeated = 0
    train = dialogues().split("train")
    for text, spans in zip(train.texts, train.secrets, strict=True):
        values = [text[s.start : s.end] for s in spans if s.kind == "order"]
        assert len(set(values)) <= 1
        repeated += len(values) > 1
    assert repeated > 10


# WikiText-2


def test_wikitext_of_the_folder_and_of_the_hub_are_the_same_texts(tmp_path, monkeypatch):
    lines = {
        "validation": [
            " = A <unk> = \n",
            "",
            *(f" Line {i} , as it is @-@ written . \n" for i in range(40)),
        ],
        "test": [" \n", " = B = \n", " Nothing 0 @.@ 7 undone . \n"],
    }
    for theirs, file in (("validation", "dev"), ("test", "test")):
        (tmp_path / "wikitext2").mkdir(exist_ok=True)
        rows = [line.strip() for line in lines[theirs] if line.strip()]
        (tmp_path / "wikitext2" / f"{file}.tsv").write_text("\n".join(["text", *rows]) + "\n")
    calls = []

    def hub(repo, config, *, data_files=None, revision=None, split=None):
        calls.append((repo, config, split))
        return datasets.Dataset.from_dict({"text": lines[split]})

    monkeypatch.setattr(datasets, "load_dataset", hub)
    monkeypatch.delenv("LEAKBOARD_DATA", raising=False)
    from_hub, from_folder = load_task("wikitext2"), load_task("wikitext2", tmp_path)
    assert from_hub.hash == from_folder.hash
    place = ("Salesforce/wikitext", "wikitext-2-v1")
    assert calls == [(*place, "validation"), (*place, "test")]
    assert from_hub.split("dev").texts == ("= B =", "Nothing 0 @.@ 7 undone .")
    assert {name: len(split) for name, split in from_hub.splits.items()} == {
        "train": 37,
        "dev": 2,
        "auxiliary": 4,
    }


def test_real_wikitext_has_its_validation_part_in_train_and_its_test_part_in_dev(data):
    if not (data / "wikitext2").is_dir():
        pytest.skip(f"needs wikitext2 in {data}")
    task = load_task("wikitext2", data)
    assert task.labels == ()
    assert set(task.splits) == {"train", "dev", "auxiliary"}
    assert list(task.split("dev").texts) == read_table(data / "wikitext2/test.tsv").column("text")
    both = {*task.split("train").texts, *task.split("auxiliary").texts}
    assert both == set(read_table(data / "wikitext2/dev.tsv").column("text"))
    assert len(task.split("train")) + len(task.split("auxiliary")) == 2461
    assert not set(task.split("auxiliary").texts) & set(task.split("dev").texts)


# ABCD


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


# The user's own texts


TEXTS = [f'note {i}, "as written"' for i in range(200)]


MANY = "".join(f"row {i}\tb\n" for i in range(99))


def own(folder, name, content, **fields):
    (folder / name).write_text(content, "utf-8")
    return load_task(OwnTask(name="mine", path=name, **fields), base=folder)


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
        ("a.txt", "", {}, "a.txt: the file is empty; expected a text on each line"),
        ("a.txt", "\n \n", {}, "a.txt: the file is empty; expected a text on each line"),
        ("a.txt", "one\ntwo\n", {}, "2 rows are too few, none fell into"),
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
