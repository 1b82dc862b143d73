"""Logs the settings, curves and record of each finished cell to an experiment tracker."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import yaml

from leakboard.bench.contracts import (
    LeakboardError,
    MissingExtra,
    Record,
    did_you_mean,
    digest,
    plain,
)
from leakboard.bench.records import to_text
from leakboard.bench.running.plan import PlannedCell
from leakboard.bench.running.reporting import Reporter

TRACKERS = ("mlflow",)
INVALID_CHARACTERS = re.compile(r"[^\w\-./ ]")
"""Characters that MLflow does not allow in a name."""
MAX_LENGTH, MAX_BATCH = 500, 1000
"""Characters of a setting and metrics in one call that every version of MLflow accepts."""
KEY_TAG, DIGEST_TAG = "leakboard.key", "leakboard.digest"


def check_tracker(log_to: str) -> None:
    """Raises LeakboardError unless `log_to` names a tracker, with an optional address after a colon."""
    name = log_to.partition(":")[0]
    if name not in TRACKERS:
        raise LeakboardError(
            f"log_to: unknown '{plain(log_to, 80)}'. {did_you_mean(name, TRACKERS)} Its address may follow, "
            "as in mlflow:sqlite:///runs.db"
        )


class TrackingReporter(Reporter):
    """Passes all events to another reporter, and logs each finished cell to MLflow.

    A cell is a run of an experiment with the name of the suite. A cell is not logged twice, but its run is updated if
    its record has grown. If the tracker rejects a cell, a warning is shown and the suite continues.

    Args:
        log_to: `mlflow`, or `mlflow:` and the address of a server or database; the default is MLFLOW_TRACKING_URI.
        suite: name of the suite.

    Raises:
        LeakboardError: the tracker is unknown or cannot be reached.
        MissingExtra: MLflow is not installed.
    """

    def __init__(self, inner: Reporter, log_to: str, suite: str) -> None:
        check_tracker(log_to)
        try:
            from mlflow.tracking import MlflowClient
        except ImportError as error:
            raise MissingExtra("mlflow", "mlflow") from error
        self._inner = inner
        address = log_to.partition(":")[2]
        try:
            self._client = MlflowClient(tracking_uri=address or None)
            found = self._client.get_experiment_by_name(suite)
            self._experiment = (
                found.experiment_id if found else self._client.create_experiment(suite)
            )
        except Exception as error:  # databases, networks and MLflow have no common base class
            raise LeakboardError(
                f"log_to: MLflow at {address or 'MLFLOW_TRACKING_URI'} does not respond ({_first_line(error)})"
            ) from error

    def started(self, planned: PlannedCell, lane: int = 0) -> None:
        self._inner.started(planned, lane)

    def moved(self, what: str, done: int, total: int, lane: int = 0) -> None:
        self._inner.moved(what, done, total, lane)

    def warned(self, message: str) -> None:
        self._inner.warned(message)

    def finished(self, record: Record, reused: bool) -> None:
        self._inner.finished(record, reused)
        if record.cell.shadow is not None:  # an attacker's model is no result
            return
        try:
            self._log(record)
        except Exception as error:
            self._inner.warned(f"{record.key} is not logged to MLflow: {_first_line(error)}")

    def _log(self, record: Record) -> None:
        client, content = self._client, digest(record.model_dump(mode="json"))
        filter_ = f"tags.`{KEY_TAG}` = '{record.key}'"
        before = client.search_runs([self._experiment], filter_, max_results=1)
        if before and before[0].data.tags.get(DIGEST_TAG) == content:
            return
        started = int(datetime.fromisoformat(record.provenance.created).timestamp() * 1000)
        run = (
            before[0]
            if before
            else client.create_run(self._experiment, start_time=started, run_name=_name(record))
        )
        name = run.info.run_id
        if not before:
            for key, value in _settings(record).items():
                client.log_param(name, key, value)
        from mlflow.entities import Metric

        metrics = [Metric(key, value, started, step) for key, value, step in _numbers(record)]
        for start in range(0, len(metrics), MAX_BATCH):
            client.log_batch(name, metrics=metrics[start : start + MAX_BATCH])
        client.log_text(name, to_text(record), "record.json")
        cell = record.cell.model_dump(mode="json")
        client.log_text(
            name, yaml.safe_dump(cell, sort_keys=False, allow_unicode=True), "cell.yaml"
        )
        tags = {
            KEY_TAG: record.key,
            "leakboard.status": record.status,
            "leakboard.reason": record.reason[:MAX_LENGTH],
            "leakboard.version": record.provenance.leakboard,
            "leakboard.commit": record.provenance.commit,
        }
        # The digest comes last: if logging is interrupted before it, the cell is logged again.
        for key, value in {**tags, DIGEST_TAG: content}.items():
            client.set_tag(name, key, value)
        ended = started + int(1000 * record.cost.total_seconds) if record.cost else started
        done = record.status in ("ok", "skipped")
        client.set_terminated(name, "FINISHED" if done else "FAILED", ended)


def _name(record: Record) -> str:
    cell = record.cell
    params = ", ".join(f"{name}={value}" for name, value in cell.defense.params.items())
    return " ".join(filter(None, [cell.task, cell.defense.name, params, f"seed {cell.seed}"]))[
        :MAX_LENGTH
    ]


def _settings(record: Record) -> dict[str, str]:
    """Everything that decides the outcome, flattened; parameters of a method have its name as a prefix."""
    cell = record.cell.model_dump(mode="json", exclude={"defense", "shadow"})
    spec = record.cell.defense
    cell |= {"defense": spec.name, "defense.version": spec.version}
    cell |= {f"{spec.name}.{name}": value for name, value in spec.params.items()}
    return {_valid_name(name): str(value)[:MAX_LENGTH] for name, value in _flatten(cell)}


def _flatten(given: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in given.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{above}{name}.")
        elif value is not None:
            yield f"{above}{name}", value


def _numbers(record: Record) -> Iterator[tuple[str, float, int]]:
    """Name, value and step of each measurement; missing ones are left out."""
    for name, estimate in {"utility": record.utility, **record.measures}.items():
        if estimate is not None:
            yield from _interval(_valid_name(name), estimate)
    for step, loss in enumerate(record.loss):
        yield "loss", loss, step
    times = Counter[str]()
    for leak in record.leaks:
        if leak.success is None or leak.ep is None:
            continue
        parts = (leak.goal, leak.attribute, leak.attack.name, leak.channel, leak.view, leak.metric)
        name = _valid_name("/".join(str(part) for part in parts if part))
        times[name] += 1  # one attack with several parameters
        name += f" {times[name]}" if times[name] > 1 else ""
        yield from _interval(f"{name}/success", leak.success)
        yield f"{name}/chance", leak.success.chance, 0
        yield from _interval(f"{name}/ep", leak.ep)
        for point in leak.curve:
            yield f"{name}/over training", point.success.value, point.step
    for name, value in (record.cost.model_dump() if record.cost else {}).items():
        if isinstance(value, int | float):
            yield f"cost/{name}", float(value), 0


def _interval(name: str, of: Any) -> Iterator[tuple[str, float, int]]:
    for end, value in (("", of.value), (" low", of.low), (" high", of.high)):
        yield f"{name}{end}", value, 0


def _valid_name(name: str) -> str:
    return INVALID_CHARACTERS.sub("_", name)[:200]


def _first_line(error: Exception) -> str:
    return plain(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
