"""One word for each defense and goal: praise needs a certificate, a success needs none."""

from __future__ import annotations

import pytest
from boards import cell
from records import estimate, leak, record

from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.leaderboards.tables.comparisons import comparisons
from leakboard.leaderboards.tables.matrix import matrices
from leakboard.leaderboards.tables.verdicts import PRAISE, Verdict

OFF = cell("sap", params={"eta": None}, success=0.99, undefended=True)


def words(*records):
    """The verdict on each defense about inversion, at its setting of the matrix."""
    (found,) = matrices(comparisons(records), 100.0)
    return {line.defense: line.shields["inversion", ""].verdict for line in found.lines}


def plain(success=0.99):
    return cell("none", success=success)


@pytest.mark.parametrize(
    ("success", "word"),
    [
        (0.2, Verdict.PROTECTS),
        (0.205, Verdict.PROTECTS),  # its interval reaches chance
        (0.25, Verdict.PARTLY),  # clearly above chance
        (0.6, Verdict.PARTLY),
        (0.9, Verdict.LEAKS),  # clearly less than without protection, and next to nothing is kept
        (0.99, Verdict.LEAKS),
    ],
)
def test_a_certified_attack_decides_between_protection_and_leak(success, word):
    found = words(plain(), OFF, cell("sap", params={"eta": 50.0}, success=success))
    assert found == {"none": Verdict.LEAKS, "sap": word}


@pytest.mark.parametrize(
    ("success", "word"), [(0.2, Verdict.NOT_SHOWN), (0.3, Verdict.LEAKS), (0.6, Verdict.LEAKS)]
)
def test_without_a_certificate_nothing_is_praised_and_a_success_is_a_leak(success, word):
    found = words(plain(), cell("sap", params={"eta": 50.0}, success=success))
    assert found["sap"] == word


def test_what_neither_beats_guessing_nor_is_clearly_less_than_without_protection_is_not_shown():
    wide = leak(0.4, chance=0.2)
    wide = wide.model_copy(update={"success": estimate(0.4, 0.2, half=0.6)})
    found = words(plain(), OFF, record("sap", {"eta": 50.0}, 0, 0.9, [wide]))
    assert found["sap"] == Verdict.NOT_SHOWN


def test_a_flag_against_the_attack_takes_the_praise_back():
    cut_short = [leak(0.2, chance=0.2), leak(0.9, "prior", chance=0.2, channel=None)]
    beaten = record("sap", {"eta": 50.0}, 0, 0.9, cut_short)
    assert words(plain(), OFF, beaten)["sap"] == Verdict.NOT_SHOWN


def test_a_floor_is_no_leak_of_the_defense():
    def label(success):
        told = leak(success, "spectral", Goal.LABEL, 0.5, channel=Channel.ACTIVATIONS)
        return told.model_copy(update={"floor": estimate(0.8, 0.5)})

    records = [
        record("none", {}, 0, 0.9, [label(0.99)], undefended=True),
        record("p3eft", {"weight": 0.3}, 0, 0.9, [label(0.8)]),
    ]
    (found,) = matrices(comparisons(records))
    told = {line.defense: line.shields["label", ""].verdict for line in found.lines}
    assert told == {"none": Verdict.LEAKS, "p3eft": Verdict.PROTECTS}


def test_what_nothing_can_read_does_not_apply_and_what_failed_is_not_shown():
    member = leak(0.9, "membership", Goal.MEMBERSHIP, 0.5, channel=Channel.MODEL)
    failed = leak(None, status="failed", reason="no memory", channel=None)
    records = [
        cell("none", success=0.99, more=[member]),
        cell("sap", success=None, params={"eta": 50.0}, more=[failed]),
        cell("dpsgd", success=None, params={"epsilon": 3.0}, more=[member]),
    ]
    (found,) = matrices(comparisons(records))
    told = {
        line.defense: {aim[0]: s.verdict for aim, s in line.shields.items()} for line in found.lines
    }
    assert told["sap"] == {"inversion": Verdict.NOT_SHOWN, "membership": Verdict.NOT_APPLICABLE}
    assert told["dpsgd"]["inversion"] == Verdict.NOT_APPLICABLE
    assert {Verdict.PROTECTS, Verdict.PARTLY} == PRAISE
