"""A label defense is judged on what lies above the floor, and both are shown."""

from __future__ import annotations

import pytest
from boards import cell, the_board
from records import estimate, leak

from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.leaderboards.tables.comparisons import comparisons
from leakboard.leaderboards.tables.deciding import deciding
from leakboard.leaderboards.tables.evidence import evidence
from leakboard.leaderboards.tables.frame import frame
from leakboard.leaderboards.tables.matrix import matrices
from leakboard.leaderboards.tables.standing import levels

pytestmark = pytest.mark.usefixtures("certified")


def label(success, floor, attack="kmeans", chance=0.25):
    known = None if floor is None else estimate(floor, chance)
    given = {"channel": Channel.ACTIVATIONS, "floor": known, "view": "worst"}
    return leak(success, attack, Goal.LABEL, chance, **given)


# Four topics, which the untrained model tells apart already.
NEWS = [
    cell("none", success=1.0, more=[label(0.95, 0.85)]),
    cell("p3eft", success=1.0, utility=0.89, more=[label(0.85, 0.85)]),
]


def test_defense_that_adds_nothing_to_its_floor_keeps_all_that_there_was_to_keep():
    (found,) = matrices(comparisons(NEWS))
    shields = {line.defense: line.shields["label", ""] for line in found.lines}
    assert shields["p3eft"].kept == pytest.approx(1)
    assert shields["none"].kept == pytest.approx(0.05 / 0.15)
    notes = {}
    shields["p3eft"].remarks(notes)
    assert next(iter(notes)) == (
        "kmeans reads 0.85 from the untrained model already (guessing 0.25), which no defense can "
        "change: judged is what lies above that floor"
    )
    assert shields["p3eft"].row["ep"] == pytest.approx(0.15)  # both are shown


def test_boards_and_evidence_judge_by_the_floor_too():
    labels = [one.model_copy(update={"leaks": one.leaks[1:]}) for one in NEWS]
    rows = the_board(labels, "front").set_index("defense")
    assert rows.loc["p3eft", "privacy"].startswith("1.000")
    assert rows.loc["p3eft", "EP at chance"] == "0.750, floor 0.150"
    (one,) = evidence(comparisons(NEWS), Goal.LABEL)
    assert one.leak.kept.value == pytest.approx(1)
    assert one.open.kept.value == pytest.approx(0.05 / 0.15)


def test_attack_that_training_feeds_decides_over_one_that_reads_the_untrained_model():
    told, fed = label(0.88, 0.80, "logreg"), label(0.85, None, "adapter-difference")
    rows = frame([cell("p3eft", more=[told, fed])])
    labels = deciding(rows[rows["goal"] == "label"])
    assert labels["attack"].tolist() == ["adapter-difference"]
    assert labels["above"].tolist() == pytest.approx([0.8])
    without = frame([cell("p3eft", more=[label(0.88, None, "logreg"), fed])])
    assert deciding(without[without["goal"] == "label"])["attack"].tolist() == ["logreg"]


def test_floor_below_chance_changes_nothing():
    rows = frame([cell("p3eft", more=[label(0.88, 0.2)])])
    (row,) = rows[rows["goal"] == "label"].to_dict("records")
    assert row["above"] == pytest.approx(row["advantage"])
    assert row["floor"] == 0.2
    assert levels(row) == "0.750"
