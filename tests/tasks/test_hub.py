"""Datasets from the hub have the content of the folder."""

from __future__ import annotations

import json
import sys

import datasets
import pytest
from folders import DATA, failure, needs_data, write
from huggingface_hub import constants

from leakboard.bench.contracts.errors import MissingExtra
from leakboard.bench.tasks.catalogue import CATALOGUE
from leakboard.bench.tasks.loading import load_task
from leakboard.bench.tasks.readers import read_table
from leakboard.bench.tasks.table import bucket


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
        "train": 33,
        "dev": 2,
        "auxiliary": 8,
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


SPLIT_BY_HASH = [name for name, entry in CATALOGUE.items() if entry.hub and entry.hub.tenths]


@needs_data
@pytest.mark.parametrize("name", SPLIT_BY_HASH)
def test_hub_rule_puts_every_row_of_the_folder_into_the_split_where_it_stands(name):
    hub = CATALOGUE[name].hub
    for split in ("train", *set(hub.tenths.values())):
        values = read_table(DATA / name / f"{split}.tsv").column(hub.split_by)
        assert {hub.tenths.get(bucket(value), "train") for value in values} == {split}


class FakeHub:
    """Stands in for `datasets.load_dataset`; keeps the calls."""

    def __init__(self, splits):
        self.splits, self.calls = splits, []

    def __call__(self, path, name=None, *, data_files=None, revision=None, split=None):
        self.calls.append((path, name, data_files, revision, split))
        return self.splits[split]


@pytest.fixture
def hub(monkeypatch):
    def install(**splits):
        fake = FakeHub(splits)
        monkeypatch.setattr(datasets, "load_dataset", fake)
        return fake

    return install


def glue(names, n, start=0, **columns):
    label = datasets.ClassLabel(names=names)
    features = {column: datasets.Value("string") for column in columns}
    values = {
        column: [f"{word} {i}" for i in range(start, start + n)] for column, word in columns.items()
    }
    values["label"] = [i % len(names) for i in range(n)]
    return datasets.Dataset.from_dict(values, datasets.Features(features | {"label": label}))


def test_folder_and_hub_give_the_same_content_hash(hub, tmp_path):
    names = ["entailment", "not_entailment"]
    train = glue(names, 300, question="question", sentence="answer ")
    fake = hub(train=train, validation=glue(names, 50, 1000, question="q", sentence="a"))
    task = load_task("qnli")
    assert {call[:2] for call in fake.calls} == {("nyu-mll/glue", "qnli")}

    lines = {
        "train": [],
        "dev": [],
        "test": [f"q {1000 + i}\ta {1000 + i}\t{names[i % 2]}" for i in range(50)],
    }
    for row in train:
        split = "dev" if bucket(row["question"]) == 0 else "train"
        lines[split].append(f"{row['question']}\t{row['sentence']}\t{names[row['label']]}")
    for split, rows in lines.items():
        write(tmp_path / "qnli", split, rows, "text\ttext2\tlabel")
    assert len(lines["dev"]) > 10
    assert load_task("qnli", tmp_path).hash == task.hash
    assert task.split("dev").pairs[0].startswith("answer")


def test_hub_class_numbers_become_the_folders_label_names(hub):
    hub(
        train=glue(["negative", "positive"], 40, sentence="film"),
        validation=glue(["negative", "positive"], 10, 50, sentence="film"),
    )
    task = load_task("sst2")
    assert task.labels == ("0", "1")
    assert "test" not in task.splits
    assert task.split("dev").labels.tolist() == [0, 1] * 5


def test_mnli_keeps_the_hubs_order_of_classes(hub):
    names = ["entailment", "neutral", "contradiction"]
    hub(
        train=glue(names, 200, premise="p", hypothesis="h"),
        validation_matched=glue(names, 9, 900, premise="p", hypothesis="h"),
    )
    assert load_task("mnli").split("test").labels.tolist() == [0, 1, 2] * 3


def test_phrasebank_comes_from_the_parquet_branch_and_is_cut_by_hash(hub):
    names = ["negative", "neutral", "positive"]
    fake = hub(train=glue(names, 300, sentence="profit rose by"))
    task = load_task("financial_phrasebank")
    expected = ("takala/financial_phrasebank", "sentences_allagree", None, "refs/convert/parquet")
    assert fake.calls == [(*expected, "train")]
    assert {bucket(text) for text in task.split("test").texts} == {0, 1}
    assert {bucket(text) for text in task.split("dev").texts} == {2}


@pytest.mark.parametrize("nested_as_json", [False, True])
def test_synthpai_profiles_are_unfolded_and_authors_stay_in_one_split(hub, nested_as_json):
    profile = {"sex": "male", "age": 31, "income_level": "low", "relationship_status": "engaged"}
    profiles = [profile | {"income_level": ["low", "middle"][i % 2]} for i in range(400)]
    if nested_as_json:
        profiles = [json.dumps(profile) for profile in profiles]
    authors = [f"pers{i // 2}" for i in range(400)]
    texts = ["" if i == 7 else f"comment {i}" for i in range(400)]
    fake = hub(
        train=datasets.Dataset.from_dict({"author": authors, "text": texts, "profile": profiles})
    )
    task = load_task("synthpai")
    assert fake.calls[0][2] == "synthpai.jsonl"
    assert sum(map(len, task.splits.values())) == 399
    author_of = dict(zip(texts, authors, strict=True))
    for split, tenths in (("test", {0, 1, 2}), ("dev", {3})):
        assert {bucket(author_of[text]) for text in task.split(split).texts} == tenths
    assert set(task.split("dev").attributes["age"].tolist()) == {1}


@pytest.mark.parametrize(
    "name", ["trustpilot", "blog_topic", "blog_gender_age", "blog_gender", "uci_sentiment"]
)
def test_dataset_without_a_faithful_copy_points_to_the_folder(hub, name):
    fake = hub()
    message = failure(None, name)
    assert "no faithful copy" in message
    assert "--data DIR or LEAKBOARD_DATA" in message
    assert not fake.calls


def test_unreachable_hub_says_what_to_do(monkeypatch):
    def unreachable(*_args, **_kwargs):
        raise ConnectionError("Couldn't reach the Hub")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    message = failure(None, "sst2")
    assert "nyu-mll/glue could not be loaded" in message
    assert "--data DIR or LEAKBOARD_DATA" in message


def test_a_hub_without_network_is_looked_for_once_and_not_for_each_split(monkeypatch):
    looked = []
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    access = sys.modules["leakboard.bench.tasks.hub_access"]
    monkeypatch.setattr(access, "can_connect", lambda address: bool(looked.append(address)))
    split = datasets.Dataset.from_dict({"text": ["a b"] * 20})
    monkeypatch.setattr(datasets, "load_dataset", lambda *_args, **_given: split)
    assert len(load_task("wikitext2").split("dev")) == 20
    assert len(looked) == 1


def test_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"leakboard\[hub\]"):
        load_task("sst2")


def test_hub_with_other_columns_or_without_labels_is_an_error(hub):
    hub(train=glue(["a", "b"], 40, phrase="film"))
    assert "no column 'sentence'; it has phrase, label" in failure(None, "sst2")
    unlabelled = datasets.Dataset.from_dict({"sentence": ["a film"], "label": [-1]})
    hub(train=unlabelled, validation=unlabelled)
    assert "label -1; expected 0 to 1" in failure(None, "sst2")
