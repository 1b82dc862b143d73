"""Splits: what becomes public, and that no text stands on both sides."""

from __future__ import annotations

import pytest
from folders import failure, rows_of, write
from hypothesis import given
from hypothesis import strategies as st

from leakboard.bench.tasks import assemble
from leakboard.bench.tasks.loading import load_task
from leakboard.bench.tasks.table import normal


def test_auxiliary_takes_a_fifth_of_train_and_leaves_the_rest_in_order(sst2):
    task = load_task("sst2", sst2)
    train, public = task.split("train").texts, task.split("auxiliary").texts
    assert (len(train), len(public)) == (32, 8)
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


@pytest.mark.parametrize("text", ["sentence  NUMBER 7", "sentence number 107"])
def test_a_file_of_public_text_with_the_customers_own_is_refused(sst2, text):
    path = write(sst2 / "sst2", "auxiliary", [*rows_of(3, 500), f"{text}\t0"])
    message = failure(sst2)
    assert f"{path}: 1 of 4 public examples" in message
    assert "data row 4" in message
    assert "remove these examples" in message


def test_auxiliary_file_is_used_where_there_is_one(sst2):
    write(sst2 / "sst2", "auxiliary", rows_of(3, 500))
    task = load_task("sst2", sst2)
    assert task.split("auxiliary").texts == tuple(f"sentence number {i}" for i in range(500, 503))
    assert len(task.split("train")) == 40
