"""The generated task `dialogues`, with marked secrets."""

from __future__ import annotations

import re
from importlib.metadata import version
from itertools import pairwise

import pytest
from fresh import printed
from paths import ROOT

from leakboard.bench.tasks.dialogues import KINDS, SIZES, WORDS, dialogues

HASH = "e8097caa1103f4de43d299d4d6b8c951ab564af0ff6a6917eb101120590c3a97"
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


@pytest.mark.skipif(
    f"faker=={version('faker')}" not in (ROOT / "constraints.txt").read_text().lower(),
    reason="another version of Faker knows other names than the pinned one",
)
@pytest.mark.parametrize("hash_seed", ["0", "1234"])
def test_dialogues_are_the_same_in_every_process(hash_seed):
    code = "from leakboard.bench.tasks.dialogues import dialogues; print(dialogues().hash)"
    assert printed(code, hash_seed) == dialogues().hash == HASH


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


def test_the_public_half_is_of_other_topics_and_things_than_the_private_one():
    splits = dialogues().splits
    public = " ".join(splits["auxiliary"].texts)
    private = " ".join(text for name in ("train", "dev", "test") for text in splits[name].texts)
    for ours, theirs in (
        ("tent", "kettle"),
        ("technician", "parcel"),
        ("warranty", "courier left"),
    ):
        assert ours in private
        assert ours not in public
        assert theirs in public
        assert theirs not in private


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
