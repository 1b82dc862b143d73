"""The truth as an owner has it: a file, a frame, columns; labels as numbers or names."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import torch

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.threat import Goal
from leakboard.bench.external.truth import read_truth

TEXTS = ["good food", "bad film", "dull, very dull", "bright"]
ROWS = {"text": TEXTS, "label": [1, 0, 0, 1], "age": ["old", None, "young", "old"]}


def given(kind, tmp_path, columns):
    if kind == "frame":
        return pd.DataFrame(columns)
    if kind == "columns":
        return columns
    path = tmp_path / f"truth.{kind}"
    frame = pd.DataFrame(columns)
    if kind == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame", "columns"])
def test_the_truth_is_the_same_in_whatever_it_comes(tmp_path, kind):
    known = read_truth(given(kind, tmp_path, ROWS), 2, ["age"])
    split = known.task.splits["train"]
    assert split.texts == tuple(TEXTS)
    assert split.labels.tolist() == [1, 0, 0, 1]
    assert known.task.attributes == {"age": ("old", "young")}
    assert split.attributes["age"].tolist() == [0, -1, 1, 0]
    assert known.goals == {Goal.INVERSION, Goal.REIDENTIFICATION, Goal.LABEL, Goal.ATTRIBUTE}


@pytest.mark.parametrize(
    "labels", [[1, 0, 0, 1], np.array([1, 0, 0, 1], np.uint8), torch.tensor([1, 0, 0, 1])], ids=type
)
def test_labels_may_be_any_whole_numbers(labels):
    known = read_truth({"label": labels}, 2)
    assert known.task.splits["train"].labels.tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("classes", "expected"),
    [(3, [2, 0, 1, 2]), (("worst", "bad", "good"), [0, 1, 2, 0])],
    ids=["sorted", "in the order of the logits"],
)
def test_names_of_labels_stand_for_their_numbers(classes, expected):
    known = read_truth({"label": ["worst", "bad", "good", "worst"]}, classes)
    assert known.task.splits["train"].labels.tolist() == expected


@pytest.mark.parametrize(
    ("labels", "classes", "expected"),
    [
        (["spam", "ham"], 2, ("ham", "spam")),
        ([1, 0], 2, ()),
        (["spam", "ham"], ("spam", "ham"), ()),
    ],
)
def test_only_names_that_were_sorted_are_told(labels, classes, expected):
    assert read_truth({"label": labels}, classes).sorted_labels == expected


def test_each_split_has_the_labels_of_its_own_lines():
    known = read_truth({"label": [0, 1, 1, 0], "split": ["train", "dev", "train", "dev"]}, 2)
    labels = {name: split.labels.tolist() for name, split in known.task.splits.items()}
    assert labels == {"train": [0, 1], "dev": [1, 0]}


WRONG = {
    "no table": (
        3,
        2,
        "expected the path of a table, a pandas DataFrame, a data set or columns by name, got int 3",
    ),
    "nothing to score by": ({"words": ["a"]}, 2, "nothing can be scored"),
    "columns of two lengths": (
        ROWS | {"label": [0]},
        2,
        "one length, above 0; got text 4, label 1",
    ),
    "a column that is none": (
        {"text": "good food"},
        2,
        "truth['text']: expected a value per example",
    ),
    "a tensor of scores": (
        {"label": torch.rand(2, 2)},
        2,
        "truth['label'] must be whole numbers [n]",
    ),
    "a class too high": ({"label": [0, 2]}, 2, "row 1 must be a class number from 0 to 1"),
    "a class below zero": ({"label": [0, -1]}, 2, "row 1 must be a class number"),
    "fractions": ({"label": [0.0, 1.0]}, 2, "row 0 must be a class number"),
    "an empty label": ({"label": ["a", ""]}, 2, "row 0 must be a class number"),
    "fewer names than classes": (
        {"label": ["a", "c"]},
        3,
        "2 different labels (a, c), but the transcript has 3 classes",
    ),
    "a name that the model does not have": (
        {"label": ["good", "god"]},
        ("bad", "good"),
        "or one of bad, good; got 'god'",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_truth_that_cannot_be_read_says_what_was_expected(case):
    source, classes, message = WRONG[case]
    with pytest.raises(LeakboardError, match=re.escape(message)):
        read_truth(source, classes)
