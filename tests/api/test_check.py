"""`leakboard.check`: whatever stands for a method is examined."""

from __future__ import annotations

import pytest
from paths import ROOT

import leakboard as lb
from leakboard.attacks.eia_nn import NearestNeighbour

SAMPLE = ROOT / "tests" / "plugin" / "leakboard_sample"


@pytest.mark.parametrize(
    "method",
    [
        "eia-nn",
        NearestNeighbour,
        NearestNeighbour(),
        str(SAMPLE / "attack.py"),
        SAMPLE / "attack.py",
    ],
    ids=["name", "class", "instance", "text", "path"],
)
def test_a_method_is_examined_however_it_is_given(method):
    assert lb.check(method).passed


class Silent(lb.Attack):
    """Guesses nothing, and says nothing about itself."""

    threat = lb.ThreatModel(frozenset({lb.Goal.LABEL}), frozenset({lb.Channel.LOGITS}))

    def guess(self, seen, knowledge, rng):
        return []


def test_broken_rules_are_told_with_what_to_do():
    report = lb.check(Silent)
    assert not report.passed
    with pytest.raises(AssertionError, match="names its source: set `source"):
        report.raise_if_failed()


@pytest.mark.parametrize(
    ("method", "told"),
    [
        (3, "method: expected a subclass of leakboard.Defense or leakboard.Attack"),
        (dict, "method: expected a subclass"),
        ("sapp", "Did you mean 'sap'?"),
        ("missing.py", "missing.py: no such Python file"),
    ],
)
def test_what_is_no_method_is_told(method, told):
    with pytest.raises(lb.LeakboardError, match=told):
        lb.check(method)
