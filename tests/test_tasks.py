"""Loading tasks from a folder, from the hub and from the user's own file."""

import gzip
import json
import os
import sys
from collections import Counter
from pathlib import Path

import datasets
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from bench.contracts.errors import LeakboardError, MissingExtra
from bench.tasks.catalogue import CATALOGUE, GENERATED, listing
from bench.tasks.loading import GENERATORS, load_task
from bench.tasks.own import OwnTask, SplitFiles
from bench.tasks.reviews import reviews
from bench.tasks.table import bucket, normal, read_table
from bench.tasks import assemble

DATA = Path(os.environ.get("LEAKBOARD_DATA") or Path(__file__).parents[2] / "shared" / "data")
needs_data = pytest.mark.skipif(
    not (DATA / "sst2").is_dir(), reason=f"needs the real datasets; there are none in {DATA}"
)
LABELLED = [name for name, entry in CATALOGUE.items() if entry.layout.label]
SPLIT_BY_HASH = [name for name, entry in CATALOGUE.items() if entry.hub and entry.hub.tenths]


@pytest.fixture(autouse=True)
def _no_data_folder(monkeypatch):
    monkeypatch.delenv("LEAKBOARD_DATA", raising=False)


def rows_of(n, start=0):
    return [f"sentence number {i}\t{i % 2}" for i in range(start, start + n)]


def write(folder, split, rows, header="text\tlabel"):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{split}.tsv"
    path.write_text("\n".join([header, *rows]) + "\n", "utf-8")
    return path


@pytest.fixture
def sst2(tmp_path):
    """A data folder with a small sst2 in it."""
    write(tmp_path / "sst2", "train", rows_of(40))
    write(tmp_path / "sst2", "dev", rows_of(10, 100))
    return tmp_path


def failure(data, spec="sst2", **kwargs):
    with pytest.raises(LeakboardError) as caught:
        load_task(spec, data, **kwargs)
    return str(caught.value)


# Names


def test_generated_task_wins_over_a_folder_of_its_name(tmp_path):
    write(tmp_path / "reviews", "train", rows_of(40))
    assert load_task("reviews", tmp_path) is reviews()


def test_unknown_name_suggests_the_nearest_one():
    assert "Did you mean 'mrpc'?" in failure(None, "mprc")


def test_listing_names_each_task_once_with_the_attributes_that_it_has():
    listed = {line.name: line for line in listing()}
    assert list(listed) == ["reviews", "dialogues", *CATALOGUE]
    assert set(GENERATED) == set(GENERATORS)
    assert listed["reviews"].attributes == tuple(reviews().attributes)
    assert listed["synthpai"].attributes == ("gender", "age", "relationship_status")
    assert "hub" not in listed["trustpilot"].source
    assert all(line.description for line in listed.values())


# Folder


def test_folder_gives_rows_in_order_with_indices_of_the_catalogue_labels(sst2):
    task = load_task("sst2", sst2)
    assert task.labels == ("0", "1")
    assert set(task.splits) == {"train", "dev", "auxiliary"}
    assert task.split("dev").texts == tuple(f"sentence number {i}" for i in range(100, 110))
    assert task.split("dev").labels.tolist() == [0, 1] * 5


def test_environment_variable_names_the_data_folder(sst2, monkeypatch):
    monkeypatch.setenv("LEAKBOARD_DATA", str(sst2))
    assert load_task("sst2").hash == load_task("sst2", sst2).hash


def test_data_folder_that_does_not_exist_is_not_silently_replaced_by_the_hub(tmp_path):
    assert "no such folder (named by --data)" in failure(tmp_path / "dta")


def test_quotes_and_the_word_null_are_plain_text(sst2):
    write(sst2 / "sst2", "dev", ['he said "no\t0', "NA\t1", "null\t0"])
    assert load_task("sst2", sst2).split("dev").texts == ('he said "no', "NA", "null")


def test_gzip_and_plain_files_have_the_same_content(sst2):
    before = load_task("sst2", sst2).hash
    path = sst2 / "sst2" / "train.tsv"
    path.with_suffix(".tsv.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert "both there for the split 'train'" in failure(sst2)
    path.unlink()
    assert load_task("sst2", sst2).hash == before


@pytest.mark.parametrize(
    ("split", "content", "message"),
    [
        ("train", b"", "the file is empty"),
        ("train", b"text\tlabel\n", "no data rows"),
        ("train", b"good film\t1\nbad film\t0\n", "no header line"),
        ("train", b"text\tlabels\na\t1\n", "no column 'label' in its header line. Did you mean"),
        ("train", b"text\ttext\na\t1\n", "column 'text' occurs twice"),
        ("train", b"text\tlabel\na\t1\nb\n", "line 3: 1 fields, but the header has 2"),
        ("train", b"text\tlabel\na\t1\nb\t0\tc\n", "line 3: 3 fields, but the header has 2"),
        ("train", b"text\tlabel\na\t1\nb\xff\t0\n", "line 3: not UTF-8"),
        ("train", b"text\tlabel\na\t1\nb\t\n", "data row 2: column 'label' is empty"),
        ("train", b"text\tlabel\na\t1\n \t0\n", "data row 2: column 'text' is empty"),
        ("train", b"text\tlabel\na\t1\nb\tpos\n", "label 'pos' in column 'label' is not one of"),
        ("train", b"text\tlabel\na\t1\nb\t0\n", "2 examples in train; expected at least 10"),
        ("dev", b"text\tlabel\na\t2\n", "label '2' in column 'label' does not occur in train"),
    ],
)
def test_faulty_file_is_named_with_place_and_remedy(sst2, split, content, message):
    path = sst2 / "sst2" / f"{split}.tsv"
    path.write_bytes(content)
    text = failure(sst2)
    assert str(path) in text
    assert message in text


def test_broken_gzip_is_named(sst2):
    (sst2 / "sst2" / "train.tsv").unlink()
    path = sst2 / "sst2" / "train.tsv.gz"
    path.write_bytes(b"no gzip at all")
    assert f"{path}: cannot be read" in failure(sst2)


@pytest.mark.parametrize("split", ["train", "dev"])
def test_missing_split_is_named_with_the_expected_file(sst2, split):
    (sst2 / "sst2" / f"{split}.tsv").unlink()
    assert f"no file for the split '{split}'; expected one of {split}.tsv" in failure(sst2)


def test_ages_become_bands_spellings_become_one_and_empty_is_unknown(tmp_path):
    header = "text\tlabel\tgender\tage\trelationship_status"
    people = ["male\t29\tin relationship", "female\t30\tmarried", "female\t45\t", "\t\tsingle"]
    rows = [f"words {i}\t{['low', 'high'][i % 2]}\t{people[i % 4]}" for i in range(20)]
    for split in ("train", "dev"):
        write(tmp_path / "synthpai", split, rows, header)
    dev = load_task("synthpai", tmp_path).split("dev")
    assert dev.attributes["gender"][:4].tolist() == [1, 0, 0, -1]
    assert dev.attributes["age"][:4].tolist() == [0, 1, 2, -1]
    assert dev.attributes["relationship_status"][:4].tolist() == [1, 3, -1, 0]


@pytest.mark.parametrize(
    ("person", "message"),
    [
        ("mail\t30\tsingle", "'mail' in column 'gender' is unknown. Did you mean 'male'?"),
        ("male\tthirty\tsingle", "'thirty' in column 'age'; expected a whole number"),
    ],
)
def test_unexpected_attribute_value_is_an_error_and_not_unknown(tmp_path, person, message):
    header = "text\tlabel\tgender\tage\trelationship_status"
    for split in ("train", "dev"):
        rows = [f"words {i}\t{['low', 'high'][i % 2]}\t{person}" for i in range(20)]
        write(tmp_path / "synthpai", split, rows, header)
    assert message in failure(tmp_path, "synthpai")


# The auxiliary split


def test_auxiliary_takes_a_tenth_of_train_and_leaves_the_rest_in_order(sst2):
    task = load_task("sst2", sst2)
    train, public = task.split("train").texts, task.split("auxiliary").texts
    assert (len(train), len(public)) == (36, 4)
    everything = [row.split("\t")[0] for row in rows_of(40)]
    assert [text for text in everything if text not in public] == list(train)


def test_auxiliary_has_an_upper_bound(sst2, monkeypatch):
    monkeypatch.setattr(assemble, "AUXILIARY_MOST", 2)
    assert len(load_task("sst2", sst2).split("auxiliary")) == 2


@given(
    st.lists(st.sampled_from(["One  way", "one way", "two", "TWO", "three"]), min_size=10),
    st.lists(st.sampled_from(["four", "five", "six", "Seven"]), min_size=10),
)
def test_equal_texts_are_never_on_both_sides_and_dev_texts_never_public(tmp_path_factory, a, b):
    folder = tmp_path_factory.mktemp("data")
    train = [f"{text}\t{i % 2}" for i, text in enumerate(a + b)]
    write(folder / "sst2", "train", train)
    write(folder / "sst2", "dev", ["Four\t0", "eight\t1"])
    task = load_task("sst2", folder)
    keys = {name: {normal(text) for text in split.texts} for name, split in task.splits.items()}
    assert not keys["auxiliary"] & (keys["train"] | keys["dev"])
    assert len(task.split("train")) + len(task.split("auxiliary")) == len(train)


def test_auxiliary_file_is_used_where_there_is_one(sst2):
    write(sst2 / "sst2", "auxiliary", rows_of(3, 500))
    task = load_task("sst2", sst2)
    assert task.split("auxiliary").texts == tuple(f"sentence number {i}" for i in range(500, 503))
    assert len(task.split("train")) == 40


# Real data


@needs_data
@pytest.mark.parametrize("name", LABELLED)
def test_real_folder_loads_whole_with_known_labels_and_attributes(name):
    task = load_task(name, DATA)
    folder = DATA / name
    for split in ("dev", "test"):
        path = next(folder.glob(f"{split}.tsv*"))
        assert len(task.split(split)) == len(read_table(path))
    train, public = task.split("train"), task.split("auxiliary")
    whole = len(read_table(next(folder.glob("train.tsv*"))))
    assert len(train) + len(public) == whole
    assert whole // 10 - 20 <= len(public) <= whole // 10 or len(public) == 5000
    assert set(train.labels.tolist()) == set(range(len(task.labels)))
    for attribute, names in task.attributes.items():
        assert set(train.attributes[attribute].tolist()) == set(range(len(names)))


@needs_data
@pytest.mark.parametrize("name", SPLIT_BY_HASH)
def test_hub_rule_puts_every_row_of_the_folder_into_the_split_where_it_stands(name):
    hub = CATALOGUE[name].hub
    for split in ("train", *set(hub.tenths.values())):
        values = read_table(DATA / name / f"{split}.tsv").column(hub.split_by)
        assert {hub.tenths.get(bucket(value), "train") for value in values} == {split}


# Hub


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


@pytest.mark.parametrize("name", ["trustpilot", "blog_topic", "blog_gender_age", "uci_sentiment"])
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


# The user's own file


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
        load_task(OwnTask(path=f"notes.{suffix}", **OWN), base=tmp_path)
        for suffix in ("csv", "tsv", "parquet")
    ]
    assert len({task.hash for task in tasks}) == 1
    assert tasks[0].labels == ("ham", "spam")
    assert tasks[0].attributes == {"team": ("blue", "red")}
    assert tasks[0].split("dev").pairs is not None
    assert -1 in tasks[0].split("train").attributes["team"]


def test_own_file_is_cut_by_text_so_that_equal_texts_share_a_split(tmp_path):
    pd.concat([own_rows(), own_rows()]).to_csv(tmp_path / "notes.csv", index=False)
    task = load_task(OwnTask(path="notes.csv", **OWN), base=tmp_path)
    whole = Counter(text for split in task.splits.values() for text in split.texts)
    assert set(whole.values()) == {2}
    for split in task.splits.values():
        assert set(Counter(split.texts).values()) == {2}
    assert 20 < len(task.split("dev")) < 60


def test_own_folder_and_own_mapping_agree(tmp_path):
    for split, n in (("train", 50), ("dev", 20)):
        write(tmp_path / "mine", split, rows_of(n, len(split)))
    folder = load_task(OwnTask(name="mine", path="mine"), base=tmp_path)
    files = {"train": "mine/train.tsv", "dev": "mine/dev.tsv"}
    mapping = load_task(OwnTask(name="mine", path=SplitFiles(**files)), base=tmp_path)
    assert folder.hash == mapping.hash
    assert set(folder.splits) == {"train", "dev", "auxiliary"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": "boddy"}, "no column 'boddy' in its header line. Did you mean 'body'?"),
        ({"attributes": ["teams"]}, "no column 'teams' in its header line. Did you mean 'team'?"),
        ({"path": "note.csv"}, "note.csv: no such file"),
        ({"path": "notes.xlsx"}, "unknown kind of file"),
        ({"label": "body", "path": "few.csv"}, "3 rows are too few, none fell into"),
        ({"label": "same"}, "has the one value 'x'; expected at least two labels"),
        ({"path": "fake.parquet"}, "not a readable Parquet file"),
    ],
)
def test_faulty_own_task_says_what_is_wrong(tmp_path, change, message):
    own_rows().assign(same="x").to_csv(tmp_path / "notes.csv", index=False)
    own_rows(3).to_csv(tmp_path / "few.csv", index=False)
    (tmp_path / "notes.xlsx").write_bytes(b"x")
    (tmp_path / "fake.parquet").write_bytes(b"x")
    task = OwnTask(**(OWN | {"path": "notes.csv"} | change))
    assert message in failure(None, task, base=tmp_path)


def test_own_csv_with_a_ragged_line_names_it(tmp_path):
    (tmp_path / "notes.csv").write_text('text,label\n"a, b",x\nc\n')
    task = OwnTask(name="notes", path="notes.csv")
    assert "notes.csv, line 3: 1 fields" in failure(None, task, base=tmp_path)


@pytest.mark.parametrize(
    "fields", [{"name": "sst2"}, {"name": "reviews"}, {"name": "a/b"}, {"lable": "x"}]
)
def test_own_task_refuses_taken_names_and_unknown_keys(fields):
    with pytest.raises(ValidationError):
        OwnTask(**({"name": "mine", "path": "x.csv"} | fields))
