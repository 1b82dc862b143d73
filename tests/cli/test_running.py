"""`leakboard run`: what is kept, what is not done twice, and how it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from quick_suite import SUITE

import leakboard as lb


def test_a_run_leaves_one_record_per_cell(records):
    # Four that the suite names, and the model before any tuning.
    assert len(list(records.glob("*.json"))) == 5


def test_a_second_run_trains_nothing(leakboard, records, monkeypatch):
    monkeypatch.chdir(records.parents[2])
    before = {path: path.stat().st_mtime_ns for path in records.glob("*.json")}
    code, out, _ = leakboard("run", "quick.yaml")
    assert code == 0
    assert out.count("already done") == 5
    told = out[out.rindex("already done") :]
    assert "5 cells of 4 defenses and 1 seed in results/local/quick" in " ".join(told.split())
    assert "table: leakboard show quick.yaml   picture: leakboard plot quick.yaml" in told
    assert "What helps: within 3 points, inputs: " in " ".join(told.split())
    assert {path: path.stat().st_mtime_ns for path in records.glob("*.json")} == before


def test_a_failed_cell_ends_the_run_with_code_1_and_its_reason(leakboard, tmp_path, monkeypatch):
    from leakboard.defenses.frozen import Frozen

    def fail(self, session):
        raise ZeroDivisionError("no head")

    monkeypatch.setattr(Frozen, "fine_tune", fail)
    (tmp_path / "one.yaml").write_text(
        SUITE.replace("[none, frozen, sap: {eta: [none, 75]}]", "[frozen]")
    )
    monkeypatch.chdir(tmp_path)
    code, out, _ = leakboard("run", "one.yaml")
    assert code == 1
    assert "ZeroDivisionError: no head" in out
    code, out, _ = leakboard("show", tmp_path / "results" / "local" / "quick")
    assert "ZeroDivisionError: no head" in out


def test_a_missing_extra_ends_the_run_with_the_command_that_installs_it(
    leakboard, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "faiss", None)
    (tmp_path / "quick.yaml").write_text(SUITE)
    monkeypatch.chdir(tmp_path)
    code, out, err = leakboard("run", "quick.yaml")
    assert code == 2
    assert "pip install 'leakboard[cpu]'" in err
    assert out.count("done") == 2  # none and frozen need no search, and are kept


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_sigterm_keep_what_is_finished_and_say_so(tmp_path, number, code):
    (tmp_path / "long.yaml").write_text(
        "name: long\ntask: reviews\nmodel: tiny-bert\ndefenses: [frozen, none]\nattacks: [prior]\n"
        "limit: 400\ntrain: {epochs: 60, batch_size: 16}"
    )
    script = Path(sys.executable).with_name("leakboard")
    process = subprocess.Popen(
        [script, "run", "long.yaml"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        # What runs in the background of a shell has been told to ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 1200  # the machine may be busy
    try:
        while not (kept := list(tmp_path.glob("results/local/long/*.json"))):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        process.send_signal(number)
        _, err = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == code
    assert "run the same command again to continue" in err
    assert "Traceback" not in err
    assert list(tmp_path.glob("results/local/long/*.json")) == kept


@pytest.fixture
def ignoring_sigterm():
    """Spares the process of the tests if a command does not handle the signal."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("ignoring_sigterm")
def test_sigterm_stops_a_command_which_then_leaves_the_signal_as_it_was(leakboard, monkeypatch):
    monkeypatch.setattr(lb, "run", lambda *_, **__: signal.raise_signal(signal.SIGTERM))
    code, _, err = leakboard("run", "smoke")
    assert code == 143
    assert "All finished cells are saved" in err
    monkeypatch.setattr(lb, "load", lambda *_: signal.raise_signal(signal.SIGTERM))
    code, _, err = leakboard("show", "smoke")
    assert (code, err.strip()) == (143, "Stopped.")
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


def test_plan_and_run_name_the_twins_that_they_add(leakboard, tmp_path):
    suite = tmp_path / "few.yaml"
    suite.write_text(
        "name: few\ntask: reviews\nmodel: tiny-bert\nlimit: 16\n"
        "train: {epochs: 1, batch_size: 8}\ndefenses: [sap: {eta: 75}]\nattacks: [eia-nn]\n"
    )
    told = "added: sap eta=none, which is sap with its protection off"
    code, out, _ = leakboard("plan", suite)
    assert code == 0
    assert told in out
    code, out, _ = leakboard("run", suite, "--out", tmp_path / "few")
    assert code == 0
    assert told in out
    assert len(list((tmp_path / "few").glob("*.json"))) == 3
    code, out, _ = leakboard("run", suite, "--out", tmp_path / "few", "--shard", "1/2")
    assert "1 cell of 1 defense" in " ".join(out.split())
