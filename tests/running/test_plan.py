"""A plan adds the undefended twins that its suite lacks, and says so."""

from __future__ import annotations

from cells import make, run

from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.attacks.logreg import LogReg
from leakboard.bench.records.store import Store
from leakboard.bench.running import workers as jobs
from leakboard.bench.running.reproduction import plan_reproduction
from leakboard.bench.running.runner import Runner
from leakboard.bench.suites.suite import load_suite, suite_names
from leakboard.defenses.blackout import Blackout
from leakboard.defenses.frozen import Frozen
from leakboard.defenses.none import NoDefense
from leakboard.defenses.p3eft import P3EFT
from leakboard.defenses.sap import SAP
from leakboard.defenses.sap_cti import SAPCTI
from leakboard.defenses.untuned import Untuned


def defenses(*given, **fields):
    """The defenses of the cells, in order; `untuned`, which is always there, left out."""
    cells = make(*given, twins=True, **fields).cells
    return [str(p.defense) for p in cells if p.defense.name != "untuned"]


def test_a_twin_is_added_once_for_each_seed_and_cut():
    found = defenses(SAP(eta=75), SAP(eta=110), seeds=(0, 1))
    assert found == ["sap eta=75", "sap eta=110", "sap eta=none"] * 2
    plan = make(SAP(eta=75), twins=True, cut=(0, 1))
    plan = [p for p in plan.cells if p.defense.name == "sap"]
    assert [(p.cell.cut, p.defense.eta) for p in plan] == [
        (0, 75),
        (0, None),
        (1, 75),
        (1, None),
    ]


def test_a_twin_that_is_there_in_other_words_is_not_added():
    assert defenses(SAP(eta=75), SAP(eta=None, bottom="frozen")) == [
        "sap eta=75",
        "sap eta=none bottom=frozen",
    ]
    assert defenses(SAPCTI(), SAP(eta=None)) == ["sap-cti", "sap eta=none"]
    assert defenses(P3EFT(), NoDefense()) == ["p3eft", "none"]


def test_a_twin_of_other_parameters_is_no_twin():
    found = defenses(SAP(eta=75, bottom="trainable"), SAP(eta=None))
    assert found[-1] == "sap eta=none bottom=trainable"


def test_no_twin_is_added_where_nothing_is_attacked_or_nothing_protects():
    assert defenses(SAP(eta=75), attacks=()) == ["sap eta=75"]
    assert defenses(NoDefense(), Blackout()) == ["none", "blackout"]
    # Contributing tokens are defined at the first cut only; where they are refused they need no twin.
    assert defenses(SAPCTI(eta=75), cut=(1,)) == ["sap-cti eta=75"]
    assert defenses(SAP(eta=75), attacks=(LogReg(),)) == ["sap eta=75", "sap eta=none"]


class Nowhere(SAP):
    """Runs at no cut; its twin would."""

    def skip(self, conditions):
        return "nowhere"

    def twins(self, objective):
        return (SAP(eta=None),)


def test_what_cannot_run_needs_no_twin():
    assert defenses(Nowhere(), NoDefense()) == ["sap", "none"]


def test_a_plan_says_what_it_added_and_for_whom():
    plan = make(SAP(eta=75), P3EFT(), Frozen(), twins=True)
    assert plan.added == {"sap eta=none": ("sap",), "none": ("p3eft", "frozen"), "untuned": ()}
    assert plan.additions()[1].startswith(
        "added: none, which is p3eft and frozen with its protection off"
    )
    assert make(NoDefense(), Untuned(), twins=True).additions() == []


def test_parts_of_a_plan_hold_the_twins_between_them():
    plan = make(SAP(eta=75), twins=True, seeds=(0, 1, 2))
    keys = [p.cell.key for n in range(4) for p in plan.part(n, 4).cells]
    assert sorted(keys) == sorted(p.cell.key for p in plan.cells)


def test_another_process_lays_out_the_same_twins(tmp_path):
    plan = make(SAP(eta=75), twins=True, limit=20)
    told = {
        "suite": plan.suite,
        "data": None,
        "device": "cpu",
        "folder": tmp_path,
        "transcripts": None,
        "shard": None,
        "keys": jobs.cell_keys(plan),
        "input_hashes": {},
        "since": 0.0,
        "threads": 1,
        "workers": 1,
        "secret": plan.secret,
    }
    assert jobs.cell_keys(jobs.Job(**told, twins=True).plan) == jobs.cell_keys(plan)


def test_a_cell_that_is_run_again_is_run_alone(tmp_path):
    (made,) = run(tmp_path, SAP(eta=75), attacks=(NearestNeighbour(),))
    again = plan_reproduction(made)
    assert [p.cell.key for p in again.cells] == [made.key]
    assert again.additions() == []


def test_twins_meet_the_same_attacks(tmp_path):
    plan = make(SAP(eta=75), twins=True, attacks=(NearestNeighbour(),))
    defended, twin, _ = Runner(plan, Store(tmp_path)).run()
    assert twin.undefended
    assert [leak.attack for leak in twin.leaks] == [leak.attack for leak in defended.leaks]


def test_built_in_suites_that_end_within_minutes_hold_their_twins():
    for name in set(suite_names()) & {
        "smoke",
        "memorisation-smoke",
        "dp-audit",
        "jft-wikitext2-lora",
    }:
        suite = load_suite(name)
        listed = [row.defense for row in suite.defenses]
        there = {(d.name, str(d.params)) for d in listed}
        for defense in listed:
            twins = [t for aim in defense.objectives for t in defense.twins(aim)]
            assert not twins or there & {(t.name, str(t.params)) for t in twins}, (name, defense)
