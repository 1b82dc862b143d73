"""Guesses are scored by row, and rubbish is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cells import first_scene, run, session_of
from sklearn.metrics import accuracy_score

from leakboard.attacks.aia_finetune import FineTune
from leakboard.attacks.aia_mlp import MeanMLP
from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.bench.contracts.transcript import Guess
from leakboard.bench.running.attacks import attack_all
from leakboard.bench.running.grants import knowledge_for
from leakboard.bench.scoring import metrics
from leakboard.bench.scoring.guesses import BadGuess, Truth, score
from leakboard.bench.scoring.metrics import most_frequent_share, share
from leakboard.bench.tasks.task import Task
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP


def test_unknown_values_are_neither_trained_on_nor_scored():
    session, _ = session_of(NoDefense())
    session.wire.send(Channel.TOKENS, session.train.ids, session.all_rows)
    attacks = [MeanMLP(labelled=0.5), FineTune(labelled=0.5, epochs=1)]
    scene = first_scene(NoDefense(), attacks=attacks)
    old = scene.inputs.task
    train = old.splits["train"]
    unknown = train.attributes["gender"].copy()
    unknown[::3] = -1
    attributes = {"gender": unknown, "age_band": np.full(len(unknown), -1)}
    splits = old.splits | {"train": replace(train, attributes=attributes)}
    task = Task(old.name, old.labels, splits, old.attributes)
    scene = replace(scene, inputs=replace(scene.inputs, task=task))
    leaks = attack_all(scene, session.wire.transcript())
    # An attribute that nobody is known to have is left out, since nothing of it can be scored.
    assert [(leak.status, leak.attribute) for leak in leaks] == [("ok", "gender")] * 2
    told_rows = knowledge_for(scene.planned.pairings[0], scene).labelled.rows
    scored = np.setdiff1d(np.flatnonzero(unknown >= 0), told_rows)
    assert {leak.units for leak in leaks} == {len(scored)}
    assert all(set(leak.raw["guess"]) <= {0, 1} for leak in leaks)


@pytest.fixture(scope="module")
def truth():
    inputs = first_scene(SAP()).inputs
    return Truth(inputs.tokens, inputs.task.splits, inputs.recorded)


def inversion(truth, values, split="train", **fields):
    rows = truth.recorded[split]
    lengths = truth.tokens[split].lengths.numpy()
    given = {"rows": rows, "values": values, "lengths": lengths} | fields
    return Guess(Goal.INVERSION, Channel.REPRESENTATIONS, split, **given)


def test_inversion_scores_real_tokens_only_and_any_of_its_candidates(truth):
    tokens = truth.tokens["train"]
    ids, special = tokens.ids.values.numpy(), tokens.special.numpy()
    half = np.where(np.arange(len(ids)) % 2, ids, -1)
    got = score(inversion(truth, half), truth)
    assert got["success"].value == accuracy_score(ids[~special], half[~special])
    assert got["units"] == (~special).sum()
    assert got["success"].n == len(tokens)
    assert got["success"].chance == most_frequent_share(ids[~special])
    both = np.stack([half, np.where(half == -1, ids, -1)], axis=1)
    got = score(inversion(truth, both), truth)
    assert got["success"].value == 1
    assert got["success"].chance == most_frequent_share(ids[~special], 2)


def test_guesses_are_scored_by_row_whatever_their_order(truth):
    labels = truth.splits["train"].labels
    rows = truth.recorded["train"][::-1]
    values = labels[rows].copy()
    values[:6] = 1 - values[:6]
    got = score(Guess(Goal.LABEL, None, "train", rows, values), truth)["success"]
    assert got.value == 1 - 6 / len(rows)
    assert got.chance == np.bincount(labels).max() / len(labels)


def test_unknown_attribute_values_are_not_scored(truth):
    gender = truth.splits["train"].attributes["gender"].copy()
    gender[5:] = -1
    truth.splits["train"].attributes["half"] = gender
    rows = truth.recorded["train"]
    guess = Guess(Goal.ATTRIBUTE, None, "train", rows, gender, attribute="half")
    assert score(guess, truth)["units"] == 5


def rubbish(truth):
    ids = truth.tokens["train"].ids.values.numpy()
    rows = truth.recorded["train"]
    label = np.zeros(len(rows), int)
    return {
        "floats": (inversion(truth, ids.astype(float)), "integers"),
        "NaN": (inversion(truth, np.full(len(ids), np.nan)), "integers"),
        "too few tokens": (inversion(truth, ids[:-1]), r"shape \[T\]"),
        "no candidates": (inversion(truth, ids[:, None][:, :0]), r"shape \[T\]"),
        "a cube": (inversion(truth, ids[:, None, None]), r"shape \[T\]"),
        "other lengths": (inversion(truth, ids, lengths=label), "every token"),
        "no lengths": (inversion(truth, ids, lengths=None), "every token"),
        "easy rows": (Guess(Goal.LABEL, None, "train", rows[:9], label[:9]), "each of the 48"),
        "a row twice": (Guess(Goal.LABEL, None, "train", rows * 0, label), "about 1 examples"),
        "hidden rows": (Guess(Goal.LABEL, None, "train", rows + 1, label), "recorded"),
        "wrong shape": (Guess(Goal.LABEL, None, "train", rows, label[:, None]), "one guess per"),
        "no such split": (Guess(Goal.LABEL, None, "tset", rows, label), "'tset' is not one of"),
        "unseen split": (Guess(Goal.LABEL, None, "auxiliary", rows, label), "not one of"),
        "attribute": (Guess(Goal.ATTRIBUTE, None, "train", rows, label, attribute="x"), "gender"),
        "no attribute": (Guess(Goal.ATTRIBUTE, None, "train", rows, label), "gender"),
        "goal": (Guess(Goal.MEMBERSHIP, None, "train", rows, label), "cannot be scored"),
    }


def test_rubbish_is_refused_with_a_sentence(truth):
    for guess, message in rubbish(truth).values():
        with pytest.raises(BadGuess, match=message):
            score(guess, truth)


def test_success_can_be_computed_again_from_raw(tmp_path):
    scored = 0
    for record in run(tmp_path, SAP(eta=180), NoDefense()):
        truth = np.array(record.predictions["truth"])
        right = (truth == record.predictions["predicted"]).astype(int)
        chance = most_frequent_share(truth)
        assert record.utility == share(right, np.ones(len(truth), int), chance)
        for leak in record.leaks:
            if leak.status != "ok":
                continue
            raw = {name: np.array(values) for name, values in leak.raw.items()}
            if leak.goal == Goal.INVERSION:
                hits, totals = raw["hits"], raw["tokens"]
            else:
                hits = (raw["guess"] == raw["truth"]).astype(int)
                totals = np.ones_like(hits)
                assert leak.success.chance == most_frequent_share(raw["truth"])
            assert metrics.share(hits, totals, leak.success.chance) == leak.success
            assert leak.units == totals.sum()
            scored += 1
    assert scored > 10
