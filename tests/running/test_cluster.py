"""Tasks of a Ray cluster give the records of one process."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

import psutil
import pytest
from cells import make

from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.attacks.lira import Lira
from leakboard.attacks.prior import Prior
from leakboard.bench.contracts import LeakboardError, MissingExtra
from leakboard.bench.records import Store
from leakboard.bench.running import Engine, Reporter, cluster
from leakboard.defenses.frozen import Frozen
from leakboard.defenses.redacted import Redacted
from leakboard.defenses.sap import SAP

ray = pytest.importorskip("ray")


@pytest.fixture
def silent():
    """An address at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{free.getsockname()[1]}"


def test_tasks_of_ray_give_the_records_of_one_process_shadow_models_first(
    tmp_path, monkeypatch, silent
):
    # The head of a cluster that was killed leaves its address behind.
    monkeypatch.setattr(ray._private.utils, "read_ray_address", lambda: silent)
    attacks = (Prior(), Lira(shadows=4))
    plan = make(Redacted(), Frozen(), attacks=attacks, plant={"audit": 24}, limit=48)
    alone = Engine().run(plan, Store(tmp_path / "one"), Reporter())
    together = Engine(ray="auto").run(plan, Store(tmp_path / "ray"), Reporter())
    assert [r.outcome() for r in together] == [r.outcome() for r in alone]


def test_a_task_whose_process_is_killed_is_run_again_and_nothing_is_lost(tmp_path):
    plan = make(SAP(), SAP(eta=50), Redacted(), attacks=(Prior(), NearestNeighbour()), limit=48)
    alone = Engine().run(plan, Store(tmp_path / "one"), Reporter())
    killed = []

    def kill_one():
        while not killed:
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):
                    if process.name().startswith(f"ray::{cluster.run_cell_task.__name__}"):
                        process.kill()
                        killed.append(process.pid)
                        return
            time.sleep(0.01)

    killer = threading.Thread(target=kill_one, daemon=True)
    killer.start()
    together = Engine(ray="auto", attempts=5).run(plan, Store(tmp_path / "ray"), Reporter())
    assert killed
    assert [r.outcome() for r in together] == [r.outcome() for r in alone]
    assert not list((tmp_path / "ray").glob("*.tmp"))


def test_an_address_that_does_not_answer_is_told_within_seconds_with_what_to_do(tmp_path, silent):
    plan = make(Frozen(), attacks=(), limit=20)
    with pytest.raises(LeakboardError, match=r"no cluster responds there.*ray start --head"):
        Engine(ray=silent).run(plan, Store(tmp_path), Reporter())
    with pytest.raises(LeakboardError, match="no cluster responds there"):
        Engine(ray="nowhere").run(plan, Store(tmp_path), Reporter())


def test_without_ray_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"leakboard\[ray\]"):
        cluster.run_on_ray(None, None, None, "auto", None, 1)
