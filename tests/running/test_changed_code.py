"""A method whose file changes keeps its finished cells, and the run says so."""

from __future__ import annotations

import pytest
from cells import make

from leakboard.attacks.prior import Prior
from leakboard.attacks.spectral import Spectral
from leakboard.bench.methods.combination import combine
from leakboard.bench.methods.method import _digest_of
from leakboard.bench.methods.registry import load_method
from leakboard.bench.records import Store
from leakboard.bench.running import Engine, Reporter
from leakboard.defenses.frozen import Frozen
from leakboard.defenses.sap import SAP

MINE = """
from leakboard.defenses.sap import SAP

class Mine(SAP):
    name = "mine"
"""


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    return file


def ran(file, folder, *more):
    """The record and the warnings of a run in a new process: nothing is remembered of the file."""
    _digest_of.cache_clear()
    attacks = (Prior(), *more)
    plan = make(load_method(str(file))(eta=75), attacks=attacks, limit=24, train={"epochs": 1})
    reporter, warnings = Reporter(), list[str]()
    reporter.warned = warnings.append
    return Engine().run(plan, Store(folder), reporter)[0], warnings


def test_a_run_says_that_a_method_has_changed_under_its_finished_cells(tmp_path, file):
    record, warnings = ran(file, tmp_path / "out")
    assert not warnings
    assert record.provenance.code.keys() == {"mine", "prior"}
    assert ran(file, tmp_path / "out") == (record, [])
    file.write_text(MINE + "    # another line\n")
    again, warnings = ran(file, tmp_path / "out")
    assert again == record
    (warning,) = warnings
    assert warning.startswith("mine: its file has changed")
    assert "raise `version`" in warning


def test_a_new_attack_on_a_finished_cell_does_not_hide_that_the_defense_has_changed(tmp_path, file):
    record, _ = ran(file, tmp_path / "out")
    file.write_text(MINE + "    # another line\n")
    more, _ = ran(file, tmp_path / "out", Spectral())
    assert more.provenance.code["mine"] == record.provenance.code["mine"]
    assert "spectral" in more.provenance.code
    assert ran(file, tmp_path / "out")[1]


def test_records_of_another_release_and_older_ones_say_nothing(tmp_path, file):
    record, _ = ran(file, tmp_path / "out")
    file.write_text(MINE + "    # another line\n")
    for changed in ({"leakboard": "0.0.1"}, {"code": {}}):
        made = record.provenance.model_copy(update=changed)
        Store(tmp_path / "out").write(record.model_copy(update={"provenance": made}))
        assert not ran(file, tmp_path / "out")[1]


def test_a_combination_has_the_code_of_its_parts(file):
    before = combine(load_method(str(file)), Frozen).code()
    file.write_text(MINE + "    # another line\n")
    _digest_of.cache_clear()
    assert combine(load_method(str(file)), Frozen).code() != before
    assert combine(SAP, Frozen).code() != ""
