"""Texts with marked secrets, from corpora and from own files."""

from __future__ import annotations

import pytest
from secret_texts import OWN, own_file, pieces

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.tasks.annotated import load_annotated, load_file
from leakboard.bench.tasks.task import Span


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".parquet"])
def test_an_own_file_is_read_with_its_spans_in_order(tmp_path, suffix):
    split = load_file(own_file(tmp_path, suffix)).split("file")
    assert split.texts == tuple(text for text, _ in OWN)
    assert split.secrets == (
        (Span(5, 14, "email"),),
        (Span(5, 7, "name"), Span(11, 23, "phone")),
        (),
    )


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ('[{"start": 5, "end": 99, "kind": "a"}]', r"data row 1: the span \[5, 99\)"),
        ('[{"start": 5, "kind": "a"}]', "data row 1: column 'spans' must be a JSON list"),
        ("a@b", "data row 1: column 'spans' must be a JSON list"),
        (
            '[{"start": 5, "end": 9, "kind": "a"}, {"start": 8, "end": 12, "kind": "a"}]',
            r"data row 1: .* overlap",
        ),
    ],
)
def test_wrong_spans_of_an_own_file_name_file_and_row(tmp_path, spans, message):
    path = own_file(tmp_path, ".tsv", [(OWN[0][0], spans)])
    with pytest.raises(LeakboardError, match=rf"own\.tsv, {message}"):
        load_file(path)


def corpus(folder, name, header, *rows):
    (folder / name).mkdir()
    for split in ("train", "dev"):
        (folder / name / f"{split}.tsv").write_text("\n".join([header, *rows]) + "\n")
    return folder


def test_tags_become_spans_and_an_i_without_its_b_begins_one(tmp_path):
    data = corpus(
        tmp_path, "wnut17", "text\tlabel",
        "Al Bo saw New York and Ed\tB-person B-person O B-location I-location O I-person",
        "New York Al Bo\tI-location I-location I-person I-person",
    )  # fmt: skip
    split = load_annotated("wnut17", data).split("dev")
    assert [pieces(t, own) for t, own in zip(split.texts, split.secrets, strict=True)] == [
        [("Al", "person"), ("Bo", "person"), ("New York", "location"), ("Ed", "person")],
        [("New York", "location"), ("Al Bo", "person")],
    ]
    other = tmp_path / "other"
    other.mkdir()
    corpus(other, "wnut17", "text\tlabel", "Al Bo\tO O O")
    with pytest.raises(LeakboardError, match="data row 1: 3 tags for 2 words"):
        load_annotated("wnut17", other)
