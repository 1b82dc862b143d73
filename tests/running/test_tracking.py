"""What a tracker of experiments is told of each cell: against MLflow with a database of its own."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from records import leak, record
from site_records import curve

import leakboard as lb
from leakboard.bench.contracts.threat import Goal
from leakboard.bench.records.store import to_text
from leakboard.bench.running.reporting import Reporter
from leakboard.bench.running.tracking import TrackingReporter, check_tracker

LABEL = leak(0.9, "logit-gradient", Goal.LABEL, 0.5, view="worst", curve=curve())
RECORD = record("sap", {"eta": 75.0}, 1, 0.8, [leak(0.5), LABEL], loss=[0.7, 0.4, 0.3])


class Heard(Reporter):
    """Keeps what it was told."""

    def __init__(self):
        self.warnings, self.records = [], []

    def finished(self, record, reused):
        self.records.append((record.key, reused))

    def warned(self, message):
        self.warnings.append(message)


@pytest.fixture
def heard():
    return Heard()


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """A database of MLflow without runs; to make its tables takes seconds."""
    for part in ("mlflow", "sqlalchemy", "alembic"):
        pytest.importorskip(part, reason="needs the extra 'mlflow'")
    from mlflow.tracking import MlflowClient

    place = tmp_path_factory.mktemp("mlflow") / "empty.db"
    MlflowClient(f"sqlite:///{place}").search_experiments()
    return place


@pytest.fixture
def address(empty, tmp_path, monkeypatch):
    """A database in which MLflow keeps runs; artefacts lie beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    return f"mlflow:sqlite:///{shutil.copyfile(empty, tmp_path / 'runs.db')}"


@pytest.fixture
def logged(address, heard):
    """Logs records to MLflow; returns the runs that are there, the client, and what was told besides."""
    from mlflow.tracking import MlflowClient

    def log(*records, suite="mine"):
        tracked = TrackingReporter(heard, address, suite)
        for one in records:
            tracked.finished(one, False)
        client = MlflowClient(address.partition(":")[2])
        found = client.get_experiment_by_name(suite)
        return client.search_runs([found.experiment_id]), client

    return log


pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def test_a_cell_is_a_run_with_its_settings_and_numbers(logged, heard):
    (run,), _ = logged(RECORD)
    told = run.data.params
    assert (told["defense"], told["sap.eta"], told["seed"]) == ("sap", "75.0", "1")
    assert (told["train.epochs"], told["limit"]) == ("2", "2000")
    numbers = run.data.metrics
    assert numbers["utility"] == 0.8
    of = "inversion/eia-nn/representations/train/token accuracy"
    assert numbers[f"{of}/success"] == 0.5
    assert numbers[f"{of}/ep low"] == pytest.approx(0.49)
    assert numbers["cost/bytes_up"] == 1_000_000
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "reviews sap eta=75.0 seed 1"
    assert heard.records == [(RECORD.key, False)]
    assert heard.warnings == []


def test_loss_and_leak_are_curves_over_their_steps(logged):
    (run,), client = logged(RECORD)
    loss = client.get_metric_history(run.info.run_id, "loss")
    assert [(one.step, one.value) for one in loss] == [(0, 0.7), (1, 0.4), (2, 0.3)]
    name = "label/logit-gradient/representations/worst/token accuracy/over training"
    leaked = client.get_metric_history(run.info.run_id, name)
    assert [(one.step, one.value) for one in leaked] == [(0, 0.5), (10, 0.6), (20, 0.7), (30, 0.8)]


def test_the_record_and_the_cell_are_artefacts(logged, tmp_path):
    (run,), client = logged(RECORD)
    files = {
        name: Path(client.download_artifacts(run.info.run_id, name, str(tmp_path))).read_text()
        for name in ("record.json", "cell.yaml")
    }
    assert files["record.json"] == to_text(RECORD)
    assert yaml.safe_load(files["cell.yaml"])["defense"]["params"] == {"eta": 75.0}
    assert json.loads(files["record.json"])["key"] == run.data.tags["leakboard.key"]


def test_a_cell_is_logged_once_and_goes_on_where_its_record_has_grown(logged):
    logged(RECORD)
    (run,), client = logged(RECORD)
    assert len(client.get_metric_history(run.info.run_id, "utility")) == 1
    grown = RECORD.model_copy(update={"leaks": [*RECORD.leaks, leak(0.6, "eia-map")]})
    (run,), _ = logged(grown)
    assert run.data.metrics["inversion/eia-map/representations/train/token accuracy/success"] == 0.6


def test_a_cell_that_failed_is_a_failed_run_with_its_reason(logged):
    failed = record("none", {}, 0, None, [], status="failed", reason="no room")
    (run,), _ = logged(failed)
    assert run.info.status == "FAILED"
    assert run.data.tags["leakboard.reason"] == "no room"
    assert "utility" not in run.data.metrics


def test_odd_names_and_equal_attacks_get_names_that_mlflow_takes(logged, heard):
    odd = leak(0.4, "<b>", Goal.ATTRIBUTE, attribute="α?")
    twice = [leak(0.5, params={"k": 1}), leak(0.6, params={"k": 2})]
    (run,), _ = logged(record("x'; DROP", {"a b": "z" * 900}, 0, 0.8, [odd, *twice]))
    assert heard.warnings == []
    assert (
        run.data.metrics["inversion/eia-nn/representations/train/token accuracy 2/success"] == 0.6
    )
    assert len(run.data.params["x__ DROP.a b"]) == 500


def test_what_the_tracker_refuses_is_told_and_the_run_goes_on(address, heard, monkeypatch):
    tracked = TrackingReporter(heard, address, "mine")

    def broken(*_, **__):
        raise OSError("the server has gone\nand more")

    monkeypatch.setattr(tracked._client, "search_runs", broken)
    tracked.finished(RECORD, False)
    assert heard.warnings == [f"{RECORD.key} is not logged to MLflow: OSError: the server has gone"]
    assert heard.records == [(RECORD.key, False)]


def test_shadow_models_are_not_logged(logged):
    cell = RECORD.cell.model_copy(update={"shadow": 1})
    runs, _ = logged(RECORD.model_copy(update={"cell": cell, "key": cell.key}))
    assert list(runs) == []


def test_a_run_logs_its_cells(address, tmp_path):
    from mlflow.tracking import MlflowClient

    suite = {
        "name": "two",
        "task": "reviews",
        "model": "tiny-bert",
        "limit": 48,
        "train": {"epochs": 1},
    }
    suite |= {"defenses": ["none"], "attacks": ["eia-nn"]}
    results = lb.run(suite, tmp_path / "runs", progress=False, log_to=address)
    client = MlflowClient(address.partition(":")[2])
    runs = client.search_runs([client.get_experiment_by_name("two").experiment_id])
    assert {run.data.tags["leakboard.key"] for run in runs} == {one.key for one in results}


def test_an_unknown_tracker_is_told_before_anything_is_loaded():
    with pytest.raises(
        lb.LeakboardError, match=re.escape("unknown 'mlfow'. Did you mean 'mlflow'?")
    ):
        lb.run("no-such-suite", log_to="mlfow")
    check_tracker("mlflow:http://127.0.0.1:1")


def test_a_tracker_that_cannot_be_reached_is_told(address, heard):
    with pytest.raises(lb.LeakboardError, match=r"MLflow at nonsense://x does not respond"):
        TrackingReporter(heard, "mlflow:nonsense://x", "mine")


def test_without_the_extra_its_name_is_told(heard, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow.tracking", None)
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(lb.MissingExtra, match=re.escape("leakboard[mlflow]")):
        TrackingReporter(heard, "mlflow", "mine")
