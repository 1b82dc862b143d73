"""A run that is killed again and again, in whole or one worker of it, ends like an undisturbed one."""

from __future__ import annotations

import os
import random
import signal
import time

import psutil
import pytest
from forked import start_command

from leakboard.bench.records import Store
from leakboard.bench.running import Engine, Reporter, make_plan
from leakboard.bench.suites import load_suite

KILLS = int(os.environ.get("LEAKBOARD_KILLS", "4"))
"""At random moments; LEAKBOARD_KILLS=100 takes some minutes."""
SUITE = """
name: resumed
task: reviews
model: tiny-bert
limit: 48
seeds: [0, 1, 2]
train: {epochs: 1, batch_size: 8}
record: {examples: 24}
defenses: [none, dc, {sap: {eta: [none, 75, 50, 25]}}]
attacks: [prior, eia-nn, logit-gradient, spectral]
"""


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "resumed.yaml"
    path.write_text(SUITE)
    return path


def start(suite, out):
    words = ["--out", out, "--device", "cpu", "--workers", "2", "--attempts", "1000"]
    return start_command("run", suite, *words)


def kill_group(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.join()


def kill_a_worker(process, rng):
    """One of the processes below it, whichever; False where there is none."""
    below = psutil.Process(process.pid).children(recursive=True)
    if not below:
        return False
    rng.choice(below).kill()
    return True


def records_in(out):
    return len(list(out.glob("*.json")))


def wait_for_more(process, out, before):
    """Until there is another record, or the run has ended."""
    while process.is_alive() and records_in(out) <= before:
        time.sleep(0.01)


def test_runs_killed_at_random_moments_end_like_an_undisturbed_one(tmp_path, suite):
    plan = make_plan(load_suite(str(suite)))
    whole = Engine().run(plan, Store(tmp_path / "whole"), Reporter())
    expected = {record.key: record.outcome() for record in whole}
    out, rng, kills, between = tmp_path / "killed", random.Random(0), 0, 0
    while kills < KILLS:
        process = start(suite, out)
        try:
            while kills < KILLS and process.is_alive():
                wait_for_more(process, out, records_in(out))
                time.sleep(rng.uniform(0, 0.5))
                if not process.is_alive():
                    break
                kills += 1
                between += 0 < records_in(out) < len(expected)
                if rng.random() < 0.25 or not kill_a_worker(process, rng):
                    kill_group(process)
        finally:
            if process.is_alive():
                kill_group(process)
        store = Store(out)
        found = store.read_all()
        assert store.problems == []
        assert all(record.outcome() == expected[record.key] for record in found)
        if len(found) == len(expected):  # more kills need more to do
            for path in rng.sample(sorted(out.glob("*.json")), len(expected) // 2):
                path.unlink()
    assert between > KILLS // 2, "hardly a kill fell between two records"
    process = start(suite, out)
    process.join(300)
    assert process.exitcode == 0
    assert {record.key: record.outcome() for record in Store(out).read_all()} == expected
    assert not list(out.glob("*.tmp"))
