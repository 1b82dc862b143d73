"""A run that is killed at any moment goes on, and ends as if nothing had happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from bench.records.store import Store

KILLS = 10
SUITE = """
name: resumed
task: reviews
model: tiny-bert
limit: 160
train: {epochs: 3, batch_size: 8}
defenses:
  - none
  - frozen
  - blackout
  - sap: {eta: [none, 300, 150], bottom: [frozen, trainable]}
attacks: all
"""
CELLS = 9


def start(suite, out):
    """`leakboard run`, the way a user starts it, in a process group of its own."""
    script = Path(sys.executable).with_name("leakboard")
    program = [script] if script.exists() else [
        sys.executable, "-c", "from bench.cli import main; main()",
    ]  # fmt: skip
    return subprocess.Popen(
        [*program, "run", str(suite), "--out", str(out), "--device", "cpu"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )


def finish(suite, out):
    process = start(suite, out)
    output = process.communicate(timeout=300)[0].decode()
    assert process.returncode == 0, output
    return {r.key: r.outcome() for r in Store(out).read_all()}


def records_in(folder):
    return len(list(folder.glob("*.json")))


def test_run_killed_ten_times_at_random_moments_ends_like_an_undisturbed_one(tmp_path):
    suite = tmp_path / "resumed.yaml"
    suite.write_text(SUITE)
    before = time.perf_counter()
    expected = finish(suite, tmp_path / "whole")
    took = time.perf_counter() - before
    assert len(expected) == CELLS
    first = min(p.stat().st_mtime for p in (tmp_path / "whole").glob("*.json"))
    last = max(p.stat().st_mtime for p in (tmp_path / "whole").glob("*.json"))
    loading = took - (last - first)

    out, rng, states = tmp_path / "killed", np.random.default_rng(0), []
    for kill in range(KILLS):
        process = start(suite, out)
        # Most of the time goes into imports. Two kills fall anywhere; the others a random while
        # after the run has begun to work, short enough that something is left for the last kill.
        if kill < 2:
            moment = rng.uniform(0, loading)
        else:
            moment = loading * 0.9 + rng.uniform(0, 1.5 * (last - first) / KILLS)
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        store = Store(out)
        found = store.read_all()
        assert store.problems == []
        for record in found:
            assert record.outcome() == expected[record.key]
        states.append(len(found))
    assert states == sorted(states)
    assert len({n for n in states if 0 < n < CELLS}) > 1, (
        f"hardly a kill fell between two records: {states}"
    )
    assert finish(suite, out) == expected
    assert {p.suffix for p in out.iterdir()} <= {".json", ".tmp"}
    assert records_in(out) == CELLS
