"""Reading tables: what they hold, and what is said about a faulty one."""

from __future__ import annotations

import gzip

import pytest
from folders import failure, write

from leakboard.bench.tasks.loading import load_task


def test_quotes_and_the_word_null_are_plain_text(sst2):
    write(sst2 / "sst2", "dev", ['he said "no\t0', "NA\t1", "null\t0"])
    assert load_task("sst2", sst2).split("dev").texts == ('he said "no', "NA", "null")


def test_gzip_and_plain_files_have_the_same_content(sst2):
    before = load_task("sst2", sst2).hash
    path = sst2 / "sst2" / "train.tsv"
    path.with_suffix(".tsv.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert "both exist for the split 'train'" in failure(sst2)
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
        ("train", b"text\tlabel\na\t\nb\t\n", "none of 2 rows has a label in column 'label'"),
        ("dev", b"text\tlabel\na\t-1\nb\t\n", "none of 2 rows has a label in column 'label'"),
        ("train", b"text\tlabel\na\t1\n \t0\n", "line 3: column 'text' is empty"),
        (
            "train",
            b"text\tlabel\na\t1\nb\tpos\n",
            "label 'pos' in column 'label' is not a label of",
        ),
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
    header = "text\tlabel\tgender\tage\trelationship_status\tauthor_id"
    people = ["male\t29\tin relationship", "female\t30\tmarried", "female\t45\t", "\t\tsingle"]
    rows = [f"words {i}\t{['low', 'high'][i % 2]}\t{people[i % 4]}\tpers{i % 3}" for i in range(20)]
    for split in ("train", "dev"):
        write(tmp_path / "synthpai", split, rows, header)
    dev = load_task("synthpai", tmp_path).split("dev")
    assert dev.attributes["gender"][:4].tolist() == [1, 0, 0, -1]
    assert dev.attributes["age"][:4].tolist() == [0, 1, 2, -1]
    assert dev.attributes["relationship_status"][:4].tolist() == [1, 3, -1, 0]
    assert dev.authors.tolist() == [i % 3 for i in range(20)]


@pytest.mark.parametrize(
    ("person", "message"),
    [
        ("mail\t30\tsingle", "'mail' in column 'gender' is unknown. Did you mean 'male'?"),
        ("male\tthirty\tsingle", "'thirty' in column 'age'; expected a whole number"),
    ],
)
def test_unexpected_attribute_value_is_an_error_and_not_unknown(tmp_path, person, message):
    header = "text\tlabel\tgender\tage\trelationship_status\tauthor_id"
    for split in ("train", "dev"):
        rows = [f"words {i}\t{['low', 'high'][i % 2]}\t{person}\tpers1" for i in range(20)]
        write(tmp_path / "synthpai", split, rows, header)
    assert message in failure(tmp_path, "synthpai")
