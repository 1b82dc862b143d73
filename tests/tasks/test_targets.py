"""Labels that are no classes: numbers, and several labels per text, in the notations of files."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.tasks import UserTask, load_task

WORDS = ("room", "order", "call", "agent", "today", "number", "good", "bad", "late")
EVERY = ("a", "b", "c d")


def texts(n=80):
    rng = np.random.default_rng(0)
    return [f"{' '.join(rng.choice(WORDS, 6))} {i}" for i in range(n)]


def sets(n=80):
    """Labels of each text: none, one, or several."""
    rng = np.random.default_rng(1)
    return [[name for name in EVERY if rng.random() < 0.4] for _ in range(n)]


def load(frame, **fields):
    return load_task(UserTask(name="mine", path=frame, **fields))


def targets_of(task):
    """Target of each text, whatever its split."""
    return {
        text: target
        for split in task.splits.values()
        for text, target in zip(split.texts, split.targets.tolist(), strict=True)
    }


def test_numbers_have_mean_0_and_variance_1_in_train_and_keep_their_order_everywhere():
    numbers = np.random.default_rng(0).normal(3, 2, 80)
    task = load(pd.DataFrame({"text": texts(), "label": numbers}), objective="regression")
    assert (task.objective, task.outputs, task.labels) == ("regression", 1, ())
    train = np.concatenate([task.splits[name].targets for name in ("train", "auxiliary")])
    assert (train.mean(), train.std()) == pytest.approx((0, 1), abs=1e-5)
    found = targets_of(task)
    order = sorted(texts(), key=found.__getitem__)
    assert order == [texts()[i] for i in np.argsort(numbers)]


def test_targets_are_part_of_the_hash_and_follow_their_rows():
    frame = pd.DataFrame({"text": texts(), "label": np.arange(80.0)})
    task = load(frame, objective="regression")
    other = load(frame.assign(label=np.arange(80.0) ** 2), objective="regression")
    assert task.hash != other.hash
    few = task.limited(10, 0).splits["train"]
    whole = dict(zip(task.splits["train"].texts, task.splits["train"].targets, strict=True))
    assert [whole[text] for text in few.texts] == few.targets.tolist()


NOTATIONS = {
    "lists in JSON lines": lambda rows: rows,
    "JSON in a field": lambda rows: [json.dumps(row) for row in rows],
    "lists as pandas writes them": lambda rows: [str(row) for row in rows],
    "texts between bars": lambda rows: ["|".join(row) if row else "[]" for row in rows],
}


@pytest.mark.parametrize("notation", NOTATIONS)
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_sets_of_labels_are_read_in_every_notation(tmp_path, notation, kind):
    path, column = tmp_path / f"data.{kind}", NOTATIONS[notation](sets())
    frame = pd.DataFrame({"text": texts(), "label": column})
    if kind == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_json(path, orient="records", lines=True)
    task = load(path, objective="multilabel")
    assert (task.objective, task.labels, task.outputs) == ("multilabel", EVERY, 3)
    expected = {
        t: [float(one in own) for one in EVERY] for t, own in zip(texts(), sets(), strict=True)
    }
    assert targets_of(task) == expected


def test_columns_of_flags_are_labels_as_in_toxicity_data(tmp_path):
    frame = pd.DataFrame({"text": texts()} | {n: [int(n in own) for own in sets()] for n in EVERY})
    frame.to_csv(tmp_path / "data.csv", index=False)
    task = load(tmp_path / "data.csv", label=list(EVERY))
    assert task.objective == "multilabel"
    assert targets_of(task)[texts()[3]] == [float(n in sets()[3]) for n in EVERY]
    frame.loc[7, "b"] = 2
    frame.to_csv(tmp_path / "data.csv", index=False)
    with pytest.raises(
        LeakboardError, match=r"data\.csv, line 9: '2' in column 'b'; expected 1 if"
    ):
        load(tmp_path / "data.csv", label=list(EVERY))


def test_lists_of_zeros_and_ones_are_flags_and_other_lists_are_labels():
    rows = [[1, 0, 1], [0, 0, 0], [0, 1, 1], [1, 1, 0]] * 20
    task = load(pd.DataFrame({"text": texts(), "label": rows}), objective="multilabel")
    assert targets_of(task)[texts()[0]] == [1, 0, 1]
    ids = [[0, 2], [], [1], [2, 1]] * 20
    task = load(pd.DataFrame({"text": texts(), "label": ids}), objective="multilabel")
    assert targets_of(task)[texts()[3]] == [0, 1, 1]


def test_lists_of_class_numbers_of_a_dataset_have_their_names():
    datasets = pytest.importorskip("datasets")
    kinds = datasets.Features(
        {
            "text": datasets.Value("string"),
            "label": datasets.List(datasets.ClassLabel(names=["joy", "fear", "anger"])),
        }
    )
    rows = [[0, 2], [], [1], [2, 1]] * 20
    data = datasets.Dataset.from_dict({"text": texts(), "label": rows}, features=kinds)
    task = load(data, objective="multilabel")
    assert task.labels == ("anger", "fear", "joy")
    assert targets_of(task)[texts()[0]] == [1, 0, 1]


def test_unlabelled_rows_are_left_out_and_an_empty_list_is_no_missing_label():
    column = [None if i % 10 == 0 else own for i, own in enumerate(sets())]
    task = load(pd.DataFrame({"text": texts(), "label": column}), objective="multilabel")
    assert sum(map(len, task.splits.values())) == 72
    assert any("have no label and are left out" in note for note in task.notes)
    assert any(not any(own) for own in targets_of(task).values())
    parts = {
        "train": pd.DataFrame({"text": texts(), "label": np.arange(80.0)}),
        "test": pd.DataFrame({"text": ["one more", "and another"], "label": [-1.0, -1.0]}),
    }
    task = load(parts | {"dev": parts["train"].head(20)}, objective="regression")
    assert "test" not in task.splits


def test_a_label_that_train_lacks_stays_an_output_and_is_named():
    parts = {"train": sets(), "dev": [["a", "rare"], ["b"]] * 10}
    frames = {
        name: pd.DataFrame({"text": texts()[: len(rows)], "label": rows})
        for name, rows in parts.items()
    }
    task = load(frames, objective="multilabel")
    assert "rare" in task.labels
    assert any("1 of 4 labels do not occur in train" in n and "rare" in n for n in task.notes)


BAD = {
    "a decimal comma": (
        ["3,5", "1", "2"],
        "regression",
        "line 2: '3,5' in column 'label' is not a number",
    ),
    "infinity": (["1", "inf", "2"], "regression", "line 3: 'inf' in column"),
    "equal numbers": (["2.5"] * 3, "regression", "has only the value 2.5"),
    "one label": (["a"] * 3, "multilabel", "has 1 labels; expected 2 to 1,000"),
    "two separators": (["a|b", "a;b", "c"], "multilabel", r"separated by \| and ;"),
    "an array as text": (["['a' 'b']", "a", "b"], "multilabel", "expected a list of labels"),
    "a list of lists": (["[['a']]", "a", "b"], "multilabel", "expected a list of labels"),
}


@pytest.mark.parametrize("case", BAD)
def test_labels_that_are_not_sure_are_refused_with_their_line(tmp_path, case):
    labels, objective, message = BAD[case]
    labels = (labels * 27)[:80]
    pd.DataFrame({"text": texts(), "label": labels}).to_csv(tmp_path / "data.csv", index=False)
    with pytest.raises(LeakboardError, match=message):
        load(tmp_path / "data.csv", objective=objective)


def test_the_messages_about_fractions_and_lists_name_the_objective():
    numbers = pd.DataFrame({"text": texts(), "label": np.arange(80) / 7})
    with pytest.raises(LeakboardError, match="write objective: regression"):
        load(numbers)
    with pytest.raises(LeakboardError, match="write objective: multilabel"):
        load(pd.DataFrame({"text": texts(), "label": sets()}))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"objective": "regression", "utility": "MCC"}, "which is measured by Spearman or Pearson"),
        ({"utility": "Spearman"}, "which is measured by accuracy or macro-F1 or MCC"),
        ({"objective": "regression", "label": ["a", "b"]}, "needs objective: multilabel"),
        ({"objective": "multilabel", "label": None}, "needs a label, not null"),
    ],
)
def test_keys_that_exclude_each_other_are_named(fields, message):
    with pytest.raises(ValueError, match=message):
        UserTask(name="mine", path="data.csv", **fields)
