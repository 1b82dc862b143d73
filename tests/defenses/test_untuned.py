"""The model before any tuning: it knows nothing of what it would be tuned on."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import fine_tuned, load_tiny, make
from released import plan_of

from leakboard.attacks.lira import Lira
from leakboard.attacks.prior import Prior
from leakboard.bench.contracts.cell import Plant
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.records.store import Store
from leakboard.bench.running import plan as planning
from leakboard.bench.running.plan import make_plan
from leakboard.bench.running.runner import Runner
from leakboard.bench.suites.suite import load_suite
from leakboard.defenses.dpsgd import DPSGD
from leakboard.defenses.none import NoDefense
from leakboard.defenses.untuned import Untuned


@pytest.fixture(autouse=True)
def _loaded_once(monkeypatch):
    monkeypatch.setattr(planning, "load_backbone", load_tiny)


def test_it_answers_with_the_most_frequent_class_of_training_and_is_as_good_as_guessing():
    session, inputs, tuned = fine_tuned(Untuned())
    labels = inputs.task.splits["train"].labels
    predicted = tuned.predict(inputs.tokens["dev"], "dev").argmax(1)
    assert set(predicted.tolist()) == {int(np.bincount(labels).argmax())}
    assert session.loss == []


def test_what_it_releases_is_the_model_before_the_first_step():
    session, _, _ = fine_tuned(Untuned())
    (message,) = session.wire.transcript().messages
    before = torch.nn.utils.parameters_to_vector(session.network().trained()).detach()
    assert message.channel == Channel.MODEL
    assert np.array_equal(message.values[0], before.numpy())


def test_a_language_model_predicts_as_it_comes(tmp_path):
    (record,) = Runner(plan_of(Untuned()), Store(tmp_path)).run()
    (other,) = Runner(plan_of(Untuned(), epochs=9), Store(tmp_path)).run()
    assert record.status == "ok"
    assert record.measures["perplexity per token"] == other.measures["perplexity per token"]


def test_a_plan_adds_it_to_every_suite_once_for_each_seed_and_says_so(tmp_path):
    plan = make(NoDefense(), twins=True, attacks=(Prior(),), seeds=(0, 1), cut=(0, 1))
    added = [p for p in plan.cells if p.defense.name == "untuned"]
    assert [(p.cell.seed, p.cell.cut, p.skip_reason) for p in added] == [(0, 0, None), (1, 0, None)]
    assert plan.additions() == [
        "added: untuned, the model before any tuning: a defense must exceed its utility"
    ]
    there = make(NoDefense(), Untuned(), twins=True)
    assert [p.defense.name for p in there.cells] == ["none", "untuned"]
    assert there.additions() == []


def test_no_shadow_models_are_trained_for_it():
    plan = make(DPSGD(epsilon=None), twins=True, attacks=(Lira(shadows=4),), plant=Plant(audit=20))
    shadows = [p.defense.name for p in plan.cells if p.cell.shadow is not None]
    assert shadows == ["dpsgd"] * 4


def test_a_twin_is_trained_as_the_row_that_it_is_the_twin_of():
    suite = load_suite(
        {
            "name": "mine",
            "task": "reviews",
            "model": "tiny-bert",
            "train": {"epochs": 1},
            "defenses": [
                {"sap": {"eta": 75}, "train": {"epochs": 4}},
                {"sap": {"eta": 50}, "train": {"epochs": 5}},
                {"p3eft": {}, "train": {"epochs": 6}},
                {"dc": {}},
            ],
            "attacks": ["eia-nn", "spectral"],
        }
    )
    cells = {str(p.defense) + f" {p.cell.train.epochs}": p for p in make_plan(suite).cells}
    assert {"sap eta=none 4", "sap eta=none 5", "none 6", "none 1"} <= cells.keys()
    assert cells["sap eta=none 4"].trained == "epochs=4"


def test_a_row_that_sets_what_the_suite_varies_is_there_once():
    given = {"name": "mine", "task": "reviews", "model": "tiny-bert", "attacks": ["prior"]}
    rows = [{"none": {}, "train": {"epochs": 3}}, "frozen"]
    suite = load_suite(given | {"train": {"epochs": [1, 2]}, "defenses": rows})
    planned = make_plan(suite, twins=False).cells
    assert [(p.defense.name, p.cell.train.epochs) for p in planned] == [
        ("none", 3),
        ("frozen", 1),
        ("frozen", 2),
    ]
