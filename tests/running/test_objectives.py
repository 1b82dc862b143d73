"""Regression and several labels per text, as whole cells: what runs, what is skipped, and what is measured."""

from __future__ import annotations

import pytest
from cells import make, run
from targets import task

from leakboard.attacks.aia_mlp import MeanMLP
from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.attacks.logit_gradient import LogitGradient
from leakboard.attacks.membership import Membership
from leakboard.attacks.prior import Prior
from leakboard.attacks.rmia import Rmia
from leakboard.bench.contracts.cell import Plant
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.threat import Goal
from leakboard.bench.methods import registry
from leakboard.bench.scoring.rescoring import rescore
from leakboard.defenses.dpsgd import DPSGD
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP
from leakboard.defenses.untuned import Untuned

OBJECTIVES = ("regression", "multilabel")
CLASSES_ONLY = {"sap-cti", "randomised-response"}
"""Defenses that are about classes by their nature; others may not be able yet, and declare it."""
ATTACKS = (NearestNeighbour(), LogitGradient(), Prior(), MeanMLP(), Membership(), Rmia())


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_defense_runs_or_says_why_it_cannot(tmp_path, objective):
    every = [registry.defense(name)() for name in sorted(registry.defenses())]
    own = [one for one in every if one.name not in ("offsite-tuning", "dpsgd", "jft", "crt")]
    records = run(
        tmp_path, *own, task=task(objective), attacks=ATTACKS, limit=24, train={"epochs": 1}
    )
    skipped = {
        record.cell.defense.name: record.reason for record in records if record.status != "ok"
    }
    declared = {one.name for one in own if objective not in one.objectives}
    assert skipped.keys() == declared | {"p3eft"}, skipped
    assert declared >= CLASSES_ONLY
    assert f"mine is {objective}" in skipped["sap-cti"]
    assert f"the labels of {objective} are no classes" in skipped["p3eft"]
    for record in records:
        if record.status == "ok":
            assert not [
                leak.reason for leak in record.leaks if leak.status not in ("ok", "skipped")
            ]
            assert record.utility_metric == (
                "Spearman" if objective == "regression" else "micro-F1"
            )
            assert not rescore(record).mismatches


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_attacks_on_texts_authors_and_members_go_on_and_those_on_classes_are_skipped(
    tmp_path, objective
):
    fields = {"task": task(objective), "attacks": ATTACKS, "limit": 40, "train": {"epochs": 1}}
    inputs, members = run(
        tmp_path, NoDefense(), DPSGD(epsilon=None), plant=(Plant(audit=20),), **fields
    )
    done = {(leak.attack.name, leak.goal) for leak in inputs.leaks if leak.status == "ok"}
    assert done >= {("eia-nn", Goal.INVERSION), ("aia-mlp", Goal.ATTRIBUTE)}
    assert not [goal for _, goal in done if goal == Goal.LABEL]
    reasons = {leak.attack.name: leak.reason for leak in inputs.leaks if leak.goal == Goal.LABEL}
    words = "numbers" if objective == "regression" else "sets of labels"
    assert reasons["prior"] == f"it guesses classes, and the labels of task mine are {words}"
    done = {leak.attack.name for leak in members.leaks if leak.status == "ok"}
    assert done == {"membership", "rmia"}


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_training_on_targets_learns_them(tmp_path, objective):
    """Behind a random encoder the head still learns words from the mean; the untuned model knows nothing."""
    train = {"epochs": 12, "learning_rate": 3e-2}
    tuned, untuned = run(
        tmp_path,
        SAP(eta=None),
        Untuned(),
        task=task(objective),
        attacks=(),
        limit=None,
        train=train,
    )
    assert tuned.loss[-1] < 0.8 * tuned.loss[0]
    assert untuned.utility.value <= untuned.utility.chance
    assert tuned.utility.low > untuned.utility.value


def test_a_suite_names_a_metric_that_fits_one_of_its_tasks():
    with pytest.raises(
        LeakboardError, match="utility: MCC does not measure the utility of regression"
    ):
        make(NoDefense(), task=task("regression"), attacks=(), utility="MCC")
    plan = make(NoDefense(), task=task("regression"), attacks=(), utility="Pearson")
    assert plan.cells[0].cell.utility == "Pearson"
