"""One writer per cell, also across processes, and nothing left of one that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from records import record

from leakboard.bench.contracts import LeakboardError
from leakboard.bench.records import Store, check_locks
from leakboard.bench.records import locks as locking

HOLDS = """
import sys, time
from pathlib import Path
from leakboard.bench.records import Store
with Store(Path(sys.argv[1])).claim(sys.argv[2]) as mine:
    print(mine, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that has claimed the cell 'a'."""
    process = subprocess.Popen([sys.executable, "-c", HOLDS, tmp_path, "a"], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"True\n"
    yield process
    process.kill()
    process.communicate()


def test_a_cell_has_one_holder_and_others_are_free(tmp_path, holder):
    store = Store(tmp_path)
    with store.claim("a") as mine:
        assert not mine
    with store.claim("b") as mine:
        assert mine
        with store.claim("b") as again:
            assert not again
    with store.claim("b") as mine:
        assert mine


def test_a_killed_holder_frees_its_cell_and_its_leavings_are_swept(tmp_path, holder):
    store = Store(tmp_path)
    for name in ("a.1234.tmp", "b.1234.tmp"):
        (tmp_path / name).write_text("half")
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    deadline = time.monotonic() + 10
    with store.claim("a") as mine:
        assert mine
        assert time.monotonic() < deadline
    assert [p.name for p in tmp_path.glob("*.tmp")] == ["b.1234.tmp"]


def test_locks_that_do_not_lock_are_refused_with_what_to_do(tmp_path, monkeypatch):
    check_locks(tmp_path / "good")
    monkeypatch.setattr(locking, "TAKES", "pass")  # as if the other process had got it, too
    with pytest.raises(LeakboardError, match=r"file locks do not work.*NFS 4"):
        check_locks(tmp_path / "bad")


def test_a_folder_that_cannot_be_written_is_told_before_anything_runs(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LeakboardError, match="cannot be written"):
        check_locks(tmp_path / "file")


def test_the_time_of_a_record_is_told_by_the_clock_of_its_disk(tmp_path):
    store, one = Store(tmp_path), record("none")
    before = store.now()
    assert store.written(one.key) == 0
    time.sleep(0.02)
    store.write(one)
    time.sleep(0.02)
    assert before < store.written(one.key) < store.now()
    assert not list(tmp_path.glob("**/*.now"))
