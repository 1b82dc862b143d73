"""The matrix says what the records say, and why a goal was not tried."""

from __future__ import annotations

import pytest
from boards import cell, the_board
from records import leak

from leakboard.bench.contracts.threat import Channel, Claim, Goal
from leakboard.leaderboards.tables.comparisons import comparisons
from leakboard.leaderboards.tables.matrix import matrices

pytestmark = pytest.mark.usefixtures("certified")


def test_matrix_stands_at_the_setting_that_keeps_most_within_the_budget():
    plain = cell("none", utility=0.90, success=1.0)
    mild = cell("sap", utility=0.89, success=0.8, params={"eta": 110.0})
    middle = cell("sap", utility=0.88, success=0.5, params={"eta": 90.0})
    strong = cell("sap", utility=0.70, success=0.2, params={"eta": 50.0})
    records = [plain, mild, middle, strong]

    def sap(budget):
        (found,) = matrices(comparisons(records), budget)
        (line,) = [line for line in found.lines if line.defense == "sap"]
        return line

    assert (sap(3.0).label, sap(3.0).within) == ("η = 90", True)
    assert sap(100.0).label == "η = 50"
    # Where nothing keeps the budget the least loss is shown, and said to exceed it.
    assert (sap(0.5).label, sap(0.5).within) == ("η = 110", False)
    shield = sap(3.0).shields["inversion", ""]
    assert shield.kept == pytest.approx(0.5 / 0.8)
    assert shield.row["attack"] == "eia-nn"


def test_a_defense_with_its_protection_off_does_not_stand_for_it():
    plain = cell("none", utility=0.9, success=1.0)
    off = cell("sap", utility=0.9, success=0.3, params={"eta": None}, undefended=True)
    on = cell("sap", utility=0.6, success=0.3, params={"eta": 50.0})
    (found,) = matrices(comparisons([plain, off, on]))
    labels = {line.defense: (line.label, line.within) for line in found.lines}
    assert labels == {"none": ("none", True), "sap": ("η = 50", False)}


def test_what_befalls_a_defense_is_no_choice_of_its_user():
    plain = cell("none", utility=0.9, success=1.0)
    masked = cell("redacted", success=0.2, params={"canaries": "masked"})
    missed = cell("redacted", success=0.9, params={"canaries": "missed"})
    (found,) = matrices(comparisons([plain, masked, missed]))
    (line,) = [line for line in found.lines if line.defense == "redacted"]
    assert line.shields["inversion", ""].kept == pytest.approx(0.1 / 0.8)
    # Of two detectors the one whose bad luck is smaller.
    steady = [
        cell("redacted", success=x, params={"detector": "exact", "canaries": c})
        for x, c in ((0.6, "masked"), (0.7, "missed"))
    ]
    (found,) = matrices(comparisons([plain, masked, missed, *steady]))
    (line,) = [line for line in found.lines if line.defense == "redacted"]
    assert line.shields["inversion", ""].kept == pytest.approx(0.3 / 0.8)
    rows = the_board([plain, *steady], "hypervolume").set_index("defense")
    assert rows.loc["redacted", "hypervolume"] == f"{0.3 / 0.8:.3f}"


def test_a_claim_is_told_in_words():
    parameters = {"epsilon_per_dimension": 10.0, "epsilon_per_vector": 3840.0}
    claim = Claim(guarantee="local dp", parameters=parameters, covers="vectors")
    one = cell("dpnr", success=0.3).model_copy(update={"claim": claim})
    (found,) = matrices(comparisons([cell("none", success=1.0), one]))
    claimed = {line.defense: line.claimed for line in found.lines}
    assert claimed == {"none": "–", "dpnr": "ε per dimension = 10, ε per vector = 3,840"}


def test_matrix_says_why_a_goal_was_not_tried():
    label = leak(0.9, "spectral", Goal.LABEL, 0.5, channel=Channel.GRADIENTS)
    skipped = leak(
        None, "xgboost", Goal.LABEL, status="skipped", reason="too few rows", channel=None
    )
    member = leak(0.6, "membership", Goal.MEMBERSHIP, 0.5, channel=Channel.MODEL)
    records = [
        cell("none", success=1.0, more=[label, member]),
        cell("dpsgd", success=None, params={"epsilon": 3.0}, more=[member]),
        cell("sap", success=0.5, params={"eta": 75.0}, more=[skipped]),
        cell("p3eft", success=0.5),
    ]
    (found,) = matrices(comparisons(records))
    why = {
        (line.defense, goal): shield.why
        for line in found.lines
        for (goal, _), shield in line.shields.items()
    }
    assert why["dpsgd", "label"] == "nothing but the trained model leaves the owner"
    assert why["sap", "membership"] == "no trained model is handed out"
    assert why["sap", "label"] == "too few rows"
    assert why["p3eft", "label"] == "not measured"
    assert why["none", "label"] == ""
    notes = {}
    shields = next(line.shields for line in found.lines if line.defense == "dpsgd")
    assert shields["label", ""].remarks(notes) == " (1)"
    assert shields["membership", ""].remarks(notes) == ""
