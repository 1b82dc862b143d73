"""Several processes give the records of one, whatever happens to them."""

from __future__ import annotations

import os
import signal
import sys
from multiprocessing import Pipe
from pathlib import Path
from typing import ClassVar

import cloudpickle
import pytest
import torch
from cells import make, run

from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.attacks.lira import Lira
from leakboard.attacks.prior import Prior
from leakboard.bench.contracts import LeakboardError
from leakboard.bench.exchange import Predictor
from leakboard.bench.methods import Defense, Source
from leakboard.bench.records import Store
from leakboard.bench.running import Engine, Reporter, Runner
from leakboard.bench.running import workers as crews
from leakboard.defenses.frozen import Frozen
from leakboard.defenses.redacted import Redacted
from leakboard.defenses.sap import SAP

# No other process can import this file by its name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

PLANTED = {"audit": 24}
QUICK = {"limit": 48, "train": {"epochs": 1}}


class Heard(Reporter):
    """What a front end hears."""

    def __init__(self):
        self.lanes, self.keys, self.warnings = set(), [], []

    def started(self, planned, lane=0):
        self.lanes.add(lane)

    def finished(self, record, reused):
        self.keys.append(record.key)

    def warned(self, message):
        self.warnings.append(message)


class Dies(Defense):
    """Kills its process, as the kernel does where memory runs out; so often as a file counts down."""

    name: ClassVar[str] = "dies"
    source: ClassVar[Source] = Source("a test")
    emits: ClassVar[frozenset] = frozenset()

    left: str
    """The file."""

    def fail(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def fine_tune(self, session):
        file = Path(self.left)
        times = int(file.read_text())
        if times:
            file.write_text(str(times - 1))
            self.fail()
        return Predictor(lambda tokens, rows, split: torch.ones(len(rows), session.classes))


class Hungry(Dies):
    """Finds too little memory, as beside others on one GPU."""

    name: ClassVar[str] = "hungry"

    def fail(self):
        raise MemoryError("no room")


def outcomes(records):
    return [record.outcome() for record in records]


def test_two_processes_give_the_records_of_one_shadow_models_first(tmp_path):
    defenses = (Frozen(), SAP(eta=50), Redacted())
    attacks = (NearestNeighbour(), Prior(), Lira(shadows=4))
    plan = make(*defenses, attacks=attacks, plant=PLANTED, **QUICK)
    alone = Engine().run(plan, Store(tmp_path / "one"), Reporter())
    heard, store = Heard(), Store(tmp_path / "two")
    together = Engine(workers=2).run(plan, store, heard)
    assert outcomes(together) == outcomes(alone)
    assert sorted(heard.keys) == sorted(record.key for record in alone)
    assert heard.lanes == {0, 1}
    assert {record.provenance.workers for record in alone} == {1}
    assert {record.provenance.workers for record in together} == {2}
    assert not list(store.folder.glob("*.tmp"))


@pytest.mark.parametrize(("deaths", "status"), [(1, "ok"), (2, "failed")])
def test_a_worker_that_dies_is_told_and_its_cell_tried_again_up_to_a_number(
    tmp_path, deaths, status
):
    (tmp_path / "left").write_text(str(deaths))
    plan = make(Dies(left=str(tmp_path / "left")), Frozen(), attacks=(Prior(),), **QUICK)
    heard = Heard()
    first, second = Engine(workers=2).run(plan, Store(tmp_path / "out"), heard)
    assert first.status == status
    assert second.status == "ok"
    assert "tried again" in heard.warnings[0]
    if status == "failed":
        assert "signal 9" in first.reason
        assert "2 attempts" in first.reason
        # It is not final: a new run tries it again, and now it lives.
        again, _ = Engine().run(plan, Store(tmp_path / "out"), Reporter())
        assert again.status == "ok"


@pytest.mark.parametrize(("times", "status"), [(1, "ok"), (2, "out-of-memory")])
def test_a_cell_without_memory_beside_others_is_run_again_alone(tmp_path, times, status):
    (tmp_path / "left").write_text(str(times))
    plan = make(Hungry(left=str(tmp_path / "left")), Frozen(), attacks=(Prior(),), **QUICK)
    heard = Heard()
    first, second = Engine(workers=2).run(plan, Store(tmp_path / "out"), heard)
    assert (first.status, second.status) == (status, "ok")
    assert sorted(heard.keys) == sorted([first.key, second.key])
    assert (first.provenance.workers, second.provenance.workers) == (1, 2)
    (warning,) = heard.warnings
    assert "memory ran out for hungry" in warning
    assert "again alone" in warning


def test_a_failed_cell_is_tried_by_one_worker_of_a_run_only(tmp_path):
    plan = make(SAP(eta=50), attacks=(Prior(),), limit=2, train={"batch_size": 1})
    heard = Heard()
    (record,) = Engine(workers=2).run(plan, Store(tmp_path), heard)
    assert heard.keys == [record.key]


def test_a_worker_whose_run_was_killed_ends_without_a_record_of_that(tmp_path):
    events, theirs = Pipe(duplex=False)
    events.close()  # as the kernel does for who was killed
    telling = crews.PipeReporter(theirs)
    telling.started = lambda *_: None  # it came as far as to train
    plan = make(Frozen(), attacks=(Prior(),), **QUICK)
    with pytest.raises(KeyboardInterrupt):
        Runner(plan, Store(tmp_path), telling).run()
    assert not list(tmp_path.glob("*.json"))


def test_a_worker_with_other_data_is_refused_by_what_differs(tmp_path, monkeypatch):
    plan = make(Frozen(), attacks=(Prior(),), **QUICK)
    monkeypatch.setattr("leakboard.bench.running.engine.cell_keys", lambda _: ("another",))
    with pytest.raises(LeakboardError, match=r"other cells than this run.*the methods"):
        Engine(workers=2).run(plan, Store(tmp_path), Reporter())


def test_more_workers_than_memory_allows_are_refused_with_how_many_fit(tmp_path, monkeypatch):
    class Memory:
        available = 2**30

    monkeypatch.setattr(crews.psutil, "virtual_memory", lambda: Memory)
    with pytest.raises(LeakboardError, match=r"--workers 64: .* GiB.*At most \d+ fit"):
        crews.check_memory(64)


def test_two_suites_with_different_attacks_on_the_same_cells_keep_all_leaks(tmp_path):
    run(tmp_path, SAP(eta=50), attacks=(Prior(),), **QUICK)
    (both,) = run(tmp_path, SAP(eta=50), attacks=(NearestNeighbour(),), **QUICK)
    assert {leak.attack.name for leak in both.leaks} == {"prior", "eia-nn"}


def test_parts_of_a_plan_are_all_of_it_and_keep_shadow_models_with_their_target():
    plan = make(
        Redacted(), Frozen(), SAP(eta=50), attacks=(Lira(shadows=4),), plant=PLANTED, **QUICK
    )
    parts = [plan.part(i, 3).cells for i in range(3)]
    assert sorted(p.cell.key for part in parts for p in part) == sorted(
        p.cell.key for p in plan.cells
    )
    for part in parts:
        keys = {planned.cell.key for planned in part}
        assert all(set(planned.needs) <= keys for planned in part)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"workers": 0}, "of at least 1"),
        ({"workers": 2, "ray": "auto"}, "leave out --workers"),
        ({"gpu_memory": 8.0}, "and needs --ray"),
        ({"shard": (3, 2)}, "got 3/2"),
    ],
)
def test_an_engine_that_makes_no_sense_is_refused(given, message):
    with pytest.raises(LeakboardError, match=message):
        Engine(**given)
