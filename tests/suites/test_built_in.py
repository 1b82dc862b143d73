"""The suites of the project, and what `all` stands for."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from cells import load_tiny
from suite_files import Read

import leakboard.bench.running.plan as planning
from leakboard.bench.methods import registry
from leakboard.bench.suites.suite import load_suite, suite_names
from leakboard.bench.tasks.loading import load_task

loaded = cache(load_task)


NEVER_ALL = {
    "base-size": {"aia-mlp", "keep-emulator"},
    "matrix": {"aia-mlp"},
    "precision": {"keep-emulator", "pooled-inversion"},
    "sap-figure2": {"keep-emulator", "pooled-inversion"},
    "sap-sst2": {"aia-mlp"},
    "smoke": {"keep-emulator", "pooled-inversion"},
}
"""Attacks that `all` names and a suite's task gives nothing to guess."""


@pytest.mark.usefixtures("real_methods")
@pytest.mark.parametrize("name", suite_names())
def test_every_built_in_suite_loads_under_its_own_name(name: str) -> None:
    suite = load_suite(name)
    assert suite.name == name
    assert suite.description


@pytest.mark.usefixtures("real_methods", "minilm")
@pytest.mark.parametrize("name", suite_names())
def test_every_built_in_suite_can_be_planned_and_certifies_its_attacks(
    name: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Models that are downloaded, or dequantised.
    quick = {"gemma": "tiny-gpt2", "smollm2": "tiny-gpt2", "mpnet": "tiny-deep-bert"}
    monkeypatch.setattr(
        planning, "load_backbone", lambda name, device: load_tiny(quick.get(name, name))
    )
    monkeypatch.setattr(planning, "check_models", lambda names: None)
    monkeypatch.setattr(planning, "load_task", lambda spec, data, base: loaded(spec, data))
    suite = load_suite(name)
    plan = planning.make_plan(suite, data)
    assert not any(cell.skip_reason for cell in plan.cells)
    # Without an open setting at its cut, a failure of an attack would say nothing.
    certified = {(c.cell.task, c.cell.cut) for c in plan.cells if c.defense.undefended}
    tuned = [c for c in plan.cells if c.defense.name != "untuned"]
    assert certified == {(c.cell.task, c.cell.cut) for c in tuned}
    # What attackers measure of models of their own is no attack of the suite.
    own = [cell for cell in plan.cells if cell.cell.shadow is None]
    used = {str(p.attack) for cell in own for p in cell.pairings if p.goals}
    (plant, *_) = suite.plant or (None,)
    never = NEVER_ALL.get(name, set())
    never |= set() if plant and plant.canaries else {"canary-exposure", "extraction"}
    never |= set() if plant and plant.audit else {"membership", "rmia", "min-k", "ez-mia", "wbc"}
    sent = {channel for row in suite.defenses for channel in row.defense.emits}
    never |= set() if "labels" in sent else {"clear-label"}
    never |= {"token-gradient"} if all(task.labels for task in plan.tasks.values()) else set()
    assert used == {str(attack) for attack in suite.attacks} - never


LABELLED = {"sst2", "mrpc", "qnli", "mnli"}
"""Tasks of which a test split with labels is at hand."""


@pytest.mark.usefixtures("real_methods")
def test_every_built_in_suite_reports_on_a_labelled_test_where_there_is_one() -> None:
    suites = [load_suite(name) for name in suite_names()]
    told = {suite.name: suite.evaluate for suite in suites if LABELLED & {*map(str, suite.task)}}
    assert len(told) > 10
    assert set(told.values()) == {"test"}


def test_the_suites_that_the_documents_name_exist() -> None:
    named = {"smoke", "sap-figure2", "sap-figure3", "sap-figure4", "sap-table3", "inversion"}
    assert named <= set(suite_names())


@pytest.mark.usefixtures("real_methods")
def test_all_leaves_out_costly_attacks_and_a_suite_may_name_them(read: Read) -> None:
    every = registry.attacks()
    head = "name: s\ntask: reviews\ndefenses: none\nattacks: "
    names = {attack.name for attack in read(head + "all").attacks}
    assert names == {name for name, attack in every.items() if not attack.costly}
    assert {"aia-finetune", "eia-map", "eia-learned"} <= every.keys() - names
    assert {"eia-nn", "aia-mlp", "prior"} <= names
    named = read(head + "[eia-nn, eia-map: {sentences: 100}]").attacks
    assert [attack.name for attack in named] == ["eia-nn", "eia-map"]


@pytest.mark.usefixtures("real_methods")
def test_a_file_in_the_folder_does_not_hide_a_built_in_suite(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "smoke").write_text("notes\n", "utf-8")
    assert load_suite("smoke").name == "smoke"
