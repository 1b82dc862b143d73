"""`leakboard.attack`: a transcript from elsewhere, scored by truth in any form."""

from __future__ import annotations

import json
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch

import leakboard as lb
from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.attacks.norm import Norm
from leakboard.bench.contracts.cell import Seeds
from leakboard.bench.tasks.loading import load_task
from leakboard.defenses.sap import SAP

ATTACKS = ["eia-nn", "logit-gradient", "prior"]


@pytest.fixture(scope="module")
def sent(tmp_path_factory):
    """The folder of a transcript, what was sent in the order of its rows, and the cell's record."""
    folder = tmp_path_factory.mktemp("sent")
    suite = {
        "name": "mine",
        "task": "reviews",
        "model": "tiny-bert",
        "train": {"epochs": 1},
        "limit": 40,
        "defenses": [SAP(eta=None)],
        "attacks": ATTACKS,
    }
    record, _ = lb.run(
        suite, folder / "records", transcripts=folder / "sent", progress=False
    ).records
    assert record.cell.defense.name == "sap"
    task = load_task("reviews").limited(40, Seeds.of(0).data)
    return folder / "sent" / record.key, task.splits["train"], record


@pytest.fixture(scope="module")
def truths(sent, tmp_path_factory):
    """The same truth in every form that is taken."""
    _, split, _ = sent
    columns = {"text": list(split.texts), "label": split.labels}
    file = tmp_path_factory.mktemp("truth") / "train.csv"
    pd.DataFrame(columns).to_csv(file, index=False)
    return {
        "a path": file,
        "the text of a path": str(file),
        "a DataFrame": pd.DataFrame(columns),
        "columns with an array": columns,
        "columns with a tensor": {**columns, "label": torch.tensor(split.labels)},
        "columns with lists": {**columns, "label": split.labels.tolist()},
    }


FORMS = [
    "a path",
    "the text of a path",
    "a DataFrame",
    *[f"columns with {x}" for x in ("an array", "a tensor", "lists")],
]


@pytest.mark.parametrize("form", FORMS)
def test_truth_in_any_form_scores_the_guesses_as_the_run_did(sent, truths, form):
    folder, _, record = sent
    found = lb.attack(
        folder, "tiny-bert", truth=truths[form], attacks=ATTACKS, device="cpu", progress=False
    )
    for attack in ("eia-nn", "logit-gradient"):
        (theirs,) = (
            leak.success.value
            for leak in record.leaks
            if (leak.attack.name, leak.view) == (attack, "train")
        )
        ours = found.frame().set_index(["attack", "view"])["success"]
        assert ours[attack, "train"] == theirs


def test_the_best_attack_of_each_goal_is_told_and_guessing_is_none(sent, truths):
    found = lb.attack(sent[0], "tiny-bert", truth=truths["a path"], attacks=ATTACKS, progress=False)
    best = found.best()
    assert best["attack"].tolist() == ["eia-nn", "logit-gradient"]
    assert best["goal"].tolist() == ["inversion", "label"]
    assert best["is_clear"].all()
    assert found.guesses == ()
    assert "eia-nn" in repr(found)


def test_an_attack_without_a_clear_success_is_marked(sent, truths):
    wrong = {name: list(values) for name, values in truths["columns with an array"].items()}
    wrong["label"] = [(label + n) % 2 for n, label in enumerate(wrong["label"])]
    found = lb.attack(sent[0], "tiny-bert", truth=wrong, attacks=ATTACKS, progress=False)
    best = found.best().set_index("goal")
    assert best["is_clear"].to_dict() == {"inversion": True, "label": False}
    assert best["success"].notna().all()


def test_without_truth_the_guesses_are_returned_and_can_be_written(sent, tmp_path):
    folder, split, _ = sent
    found = lb.attack(folder, "tiny-bert", attacks="logit-gradient", progress=False)
    ((attack, guess),) = found.guesses
    assert attack.name == "logit-gradient"
    assert np.array_equal(guess.values, split.labels[guess.rows])
    content = json.loads(found.write(tmp_path / "all.json").read_text())
    assert content["guesses"][0]["values"] == guess.values.tolist()


class Own(NearestNeighbour):
    """An attack of one's own, under a name of its own."""

    name: ClassVar[str] = "own"


class Wrong(Own):
    """An attack that returns no list."""

    def guess(self, seen, knowledge, rng):
        return None


def test_an_attack_that_returns_no_guesses_fails_with_the_reason_with_truth_and_without(
    sent, truths
):
    for truth in (None, truths["a path"]):
        found = lb.attack(sent[0], "tiny-bert", truth=truth, attacks=Wrong, progress=False)
        assert {leak.status for leak in found.leaks} == {"failed"}
        assert all(
            "guess must return a list of lb.Guess, got NoneType" in leak.reason
            for leak in found.leaks
        )


def test_attacks_and_the_mechanism_may_be_objects(sent, truths):
    words = {"truth": truths["a path"], "progress": False}
    asked = [Own, Norm(), {"eia-nn": {}}]
    found = lb.attack(sent[0], "tiny-bert", attacks=asked, defense=SAP(eta=None), **words)
    assert {leak.attack.name for leak in found.leaks} == {"own", "norm", "eia-nn"}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"folder": 3}, "folder: expected a path, got int 3"),
        ({"folder": "nowhere"}, "nowhere"),
        ({"model": "tiny-bertt"}, "Did you mean 'tiny-bert'?"),
        ({"attacks": "eia-n"}, "unknown attack 'eia-n'. Did you mean 'eia-nn'?"),
        ({"attacks": [3]}, "expected one attack, got 3"),
        (
            {"attributes": "gender"},
            "attributes: these are columns of the truth; give `truth` as well",
        ),
        ({"truth": 3}, "truth"),
        ({"device": "gpu"}, "device: expected cpu"),
    ],
)
def test_a_wrong_argument_is_named(sent, change, told):
    with pytest.raises(lb.LeakboardError, match=told):
        lb.attack(**{"folder": sent[0], "model": "tiny-bert", "progress": False} | change)
