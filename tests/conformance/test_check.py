"""Registered methods keep the rules of the house, and a report says what to do."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from typing import ClassVar

import pytest
from paths import ROOT
from reports import NoSource, broken, outcome
from rich.console import Console

from leakboard.attacks.aia_finetune import FineTune
from leakboard.attacks.aia_public import PublicAttributes
from leakboard.attacks.bidirectional import Bidirectional
from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.attacks.eia_optimise import Optimise
from leakboard.attacks.rmia import Rmia
from leakboard.bench.conformance import trial
from leakboard.bench.conformance.check import (
    SIDE_EFFECTS,
    check_attack,
    check_defense,
    check_method,
)
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.methods import registry
from leakboard.bench.running import attacks, cell_context
from leakboard.defenses.none import NoDefense
from leakboard.defenses.offsite import OffsiteTuning
from leakboard.defenses.sap import SAP

BRIEF = {
    "aia-finetune": FineTune(epochs=5),
    "aia-public": PublicAttributes(sentences=1000),
    "bidirectional": Bidirectional(sentences=160),
    "eia-optimise": Optimise(steps=20),
    "offsite-tuning": OffsiteTuning(steps=10),
    "rmia": Rmia(population=50),
}
"""Methods that learn less than they would by default; the same is examined."""


@pytest.mark.parametrize("name", [*registry.defenses(), "sap+frozen"])
def test_every_registered_defense_keeps_the_rules(name):
    report = check_defense(BRIEF[name]) if name in BRIEF else check_method(name)
    report.raise_if_failed()


@pytest.mark.parametrize("name", registry.attacks())
def test_every_registered_attack_keeps_the_rules(name, monkeypatch):
    monkeypatch.setattr(cell_context, "MAX_PROMPTS", 10)
    if name == "extraction":  # many epochs, for which three secrets do as well as eight
        monkeypatch.setattr(trial, "CANARIES", trial.CANARIES.model_copy(update={"each": 3}))
    report = check_attack(BRIEF[name]) if name in BRIEF else check_method(name)
    report.raise_if_failed()


@pytest.mark.usefixtures("few_attacks")
def test_report_names_each_broken_rule_and_what_to_do():
    report = check_defense(NoSource)
    with pytest.raises(
        AssertionError, match=r"no-source breaks rules.*\n- names its source: set `source"
    ):
        report.raise_if_failed()
    console = Console(width=100, file=io.StringIO())
    console.print(report.table())
    shown = console.file.getvalue()
    assert "breaks 1 of the rules" in shown
    assert shown.count("failed") == 1
    assert all(result.rule in shown for result in report.results if len(result.rule) < 40)


@pytest.mark.usefixtures("few_attacks")
def test_a_broken_rule_is_the_last_row_and_rules_that_it_keeps_from_being_tried_are_one():
    class ReturnsNothing(NoDefense):
        """Forgets to return what it tunes."""

        name: ClassVar[str] = "returns-nothing"

        def fine_tune(self, session):
            super().fine_tune(session)

    report = check_defense(ReturnsNothing)
    *_, folded, last = report.rows
    assert last.rule == "fine-tunes to the end"
    assert "got NoneType" in last.detail
    reason = "it does not fine-tune to the end"
    n = [result.detail for result in report.results].count(reason)
    assert n > 5
    assert (folded.rule, folded.detail) == (f"{n} other rules", reason)
    assert [row.detail for row in report.rows].count(reason) == 1
    assert report._repr_html_().count(reason) == 1


@pytest.mark.usefixtures("few_attacks")
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
    assert broken(report) == {"has a name of its own, of lower-case words joined by '-'"}


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: check_method("sapp"), "Did you mean 'sap'"),
        (lambda: check_method("mine.py"), "no such Python file"),
        (lambda: check_defense(NearestNeighbour), "not a subclass of leakboard.Defense"),
        (lambda: check_attack(SAP()), "not a subclass of leakboard.Attack"),
        (lambda: check_defense(SAP, model="tiny-bart"), "Did you mean 'tiny-bert'"),
    ],
)
def test_what_cannot_be_examined_at_all_is_an_error_and_no_report(call, advice):
    with pytest.raises(LeakboardError, match=advice):
        call()


CHEATS = {
    "rewrites records": ("(Path(__file__).parent / 'record.json').write_text('{}')", "writes "),
    "starts a process": ("subprocess.run(['true'])", "starts true"),
    "connects": ("socket.create_connection(('127.0.0.1', 9), 0.1)", "connects to ('127.0.0.1', 9)"),
}
CHEAT = """
import socket, subprocess
from contextlib import suppress
from pathlib import Path
from typing import ClassVar
import leakboard.bench.running.attacks as attacks
from leakboard.defenses.none import NoDefense
{at_import}
class Mine(NoDefense):
    'Mine.'
    name: ClassVar[str] = 'mine'
    def fine_tune(self, session):
        with suppress(OSError):
            {in_training}
        return super().fine_tune(session)
"""


@pytest.fixture
def few_attacks(monkeypatch):
    monkeypatch.setattr(registry, "attacks", lambda: {"eia-nn": NearestNeighbour})


@pytest.mark.usefixtures("few_attacks")
@pytest.mark.parametrize("cheat", CHEATS)
def test_side_effects_of_training_are_noticed(tmp_path, cheat):
    code, detail = CHEATS[cheat]
    (tmp_path / "mine.py").write_text(CHEAT.format(at_import="", in_training=code))
    report = check_method(f"{tmp_path / 'mine.py'}:Mine")
    assert broken(report) == {SIDE_EFFECTS}
    assert detail in outcome(report, SIDE_EFFECTS).detail


@pytest.mark.usefixtures("few_attacks")
def test_a_scorer_that_is_replaced_on_import_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(attacks, "score", attacks.score)  # as it was, after the test
    patch = "attacks.score = lambda guess, truth, labelled: {}"
    (tmp_path / "mine.py").write_text(CHEAT.format(at_import=patch, in_training="pass"))
    report = check_method(f"{tmp_path / 'mine.py'}:Mine")
    assert outcome(report, SIDE_EFFECTS).detail == "replaces leakboard.bench.running.attacks.score"


def test_that_scikit_learn_counts_the_cores_is_no_side_effect_of_a_method():
    """It does so once, by a process, where the variable does not state how many threads are wanted."""
    code = """
from sklearn.cluster import KMeans
from leakboard.bench.methods.side_effects import reporting
with reporting(print):
    KMeans(2, n_init=1).fit([[0.0], [1.0], [2.0]])
"""
    free = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    free |= {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=free, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
