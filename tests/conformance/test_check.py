"""Registered methods keep the rules of the house, and a report says what to do."""

from __future__ import annotations

import io

import pytest
from reports import NoSource, broken, outcome
from rich.console import Console

from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.bench.conformance.check import check_attack, check_defense, check_method
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.methods import registry
from leakboard.defenses.sap import SAP


@pytest.mark.parametrize("name", [*registry.defenses(), "sap+frozen"])
def test_every_registered_defense_keeps_the_rules(name):
    check_method(name).raise_if_failed()


@pytest.mark.parametrize("name", registry.attacks())
def test_every_registered_attack_keeps_the_rules(name):
    check_method(name).raise_if_failed()


def test_report_names_each_broken_rule_and_what_to_do():
    report = check_defense(NoSource)
    with pytest.raises(
        AssertionError, match=r"none breaks rules.*\n- names its source: set `source"
    ):
        report.raise_if_failed()
    console = Console(width=100, file=io.StringIO())
    console.print(report.table())
    shown = console.file.getvalue()
    assert "breaks 1 of the rules" in shown
    assert shown.count("failed") == 1
    assert all(result.rule in shown for result in report.results if len(result.rule) < 40)


def test_configured_defense_is_examined_with_its_parameters():
    report = check_defense(SAP(eta=None))
    assert report.method == "sap eta=none"
    assert outcome(report, "draws its noise").outcome == "not applicable"  # with noise it passes


def test_method_in_a_file_is_examined(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from typing import ClassVar\nfrom leakboard.defenses.none import NoDefense\n"
        "class Mine(NoDefense):\n    'Mine.'\n    name: ClassVar[str] = 'Not a name'\n"
    )
    report = check_method(f"{file}:Mine")
    assert broken(report) == {"has a name of lower-case words joined by '-'"}


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: check_method("sapp"), "Did you mean 'sap'"),
        (lambda: check_method("mine.py"), "no such Python file"),
        (lambda: check_defense(NearestNeighbour), "no subclass of leakboard.Defense"),
        (lambda: check_attack(SAP()), "no subclass of leakboard.Attack"),
        (lambda: check_defense(SAP, model="tiny-bart"), "Did you mean 'tiny-bert'"),
    ],
)
def test_what_cannot_be_examined_at_all_is_an_error_and_no_report(call, advice):
    with pytest.raises(LeakboardError, match=advice):
        call()
