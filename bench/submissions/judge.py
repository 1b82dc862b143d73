"""The labels of the evaluated split, in a fresh interpreter that loads no method; the process of the method has none.

That process is given the texts, trains, attacks, and returns its record with the predictions. They are scored here.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import ValidationError

from leakboard.bench.contracts import LeakboardError, Record, fingerprint
from leakboard.bench.records import from_bytes, to_text
from leakboard.bench.running import draw_and_plant, user_secret, utility_of_scores
from leakboard.bench.scoring import rescore
from leakboard.bench.tasks import TASK_ITSELF, Planted, Split, Task, load_task

MOST_BYTES = 2**30
"""Largest message of a process."""


class Inconsistent(Exception):
    """The scores of a record do not follow from its guesses; the message says which."""


@dataclass(frozen=True)
class Order:
    """A cell to run in a subprocess, with its inputs.

    Attributes:
        record: the file of the record.
        shadows: record files of its shadow models by key, which are used without running them again.
        model: name or folder of the cell's model.
        threads: number of threads, which affects the last digits of results.
        swapped: see `Recording`; if it is not 0, the cell is trained with it and not attacked.
    """

    key: str
    record: bytes
    shadows: Mapping[str, bytes]
    data: Path | None
    device: str
    model: str
    threads: int
    swapped: float = 0.0


@dataclass(frozen=True)
class MethodData:
    """Data of a cell for the process of its method.

    Attributes:
        tasks: by name, with labels of public texts only.
        plants: the texts that are drawn, with labels except those of the evaluated split.
    """

    tasks: Mapping[str, Task]
    plants: Planted


class Judge:
    """Keeps the labels of a cell's evaluated split and scores predictions.

    Raises:
        LeakboardError: the data are not on this machine or have changed.
    """

    def __init__(self, order: Order) -> None:
        record = from_bytes(order.record, order.key, order.key)
        self.cell = cell = record.cell
        self.task = load_task(cell.task, order.data)
        if self.task.hash != cell.data_hash:
            raise LeakboardError(f"the data of task '{cell.task}' have changed")
        secret = user_secret()
        secret = secret if record.provenance.secret == fingerprint(secret) else ""
        self.plants = draw_and_plant(cell, self.task, secret)
        self.split = self.plants.task.splits[cell.evaluate]
        names = {leak.attack.params.get("auxiliary", TASK_ITSELF) for leak in record.leaks}
        self.others = {name: load_task(name, order.data) for name in names - {TASK_ITSELF}}
        self.hides = self.task.objective != "language modelling" and cell.evaluate != "train"

    def given(self) -> MethodData:
        """The data without the labels of the evaluated split."""
        tasks = {task.name: task for task in (self.task, *self.others.values())}
        if not self.hides:
            return MethodData(tasks, self.plants)
        drawn = self.plants.task
        hidden = replace(
            drawn,
            splits={**drawn.splits, self.cell.evaluate: without_labels(self.split, drawn.outputs)},
        )
        return MethodData(
            {name: _public_part(task) for name, task in tasks.items()},
            replace(self.plants, task=hidden),
        )

    def scored(self, again: Record, scores: list[list[float]] | None) -> Record:
        """The record with the utility of the predictions.

        Args:
            scores: [n, C] of the examples of the evaluated split.

        Raises:
            LeakboardError: there are no predictions.
            Inconsistent: a success does not follow from the guesses.
        """
        if self.hides and again.status == "ok":
            values = torch.tensor([] if scores is None else scores, dtype=torch.float32)
            if len(values) != len(self.split) or values.ndim != 2:
                raise LeakboardError("its process returned no predictions for the evaluated split")
            fields = utility_of_scores(values, self.split, self.task, self.cell.utility)
            again = again.model_copy(update=fields)
        mismatches = rescore(again).mismatches
        if mismatches:
            raise Inconsistent(str(mismatches[0]))
        return again


def without_labels(split: Split, outputs: int) -> Split:
    """A split whose labels are placeholders: all classes in turn, or rising numbers."""
    n = len(split)
    targets = split.targets
    if targets is not None and targets.ndim == 1:
        targets = np.linspace(-1, 1, n, dtype=targets.dtype)
    elif targets is not None:
        targets = (np.indices(targets.shape).sum(0) % 2).astype(targets.dtype)
    labels = np.arange(n) % max(1, outputs) if targets is None else split.labels
    return replace(split, labels=labels.astype(split.labels.dtype), targets=targets)


def _public_part(task: Task) -> Task:
    """A task with labels of public texts only. Its hash stays, since it names the data."""
    splits = {
        name: split if name == "auxiliary" else without_labels(split, task.outputs)
        for name, split in task.splits.items()
    }
    found = replace(task, splits=splits)
    vars(found)["hash"] = task.hash
    return found


def serve(pipe: Connection, order: Order) -> None:
    """Send what the process of the method is given, receive its result, and send the scored record.

    The result is text, of which nothing is unpickled.
    """
    try:
        judge = Judge(order)
        _send(pipe, "given")
        pipe.send_bytes(pickle.dumps(judge.given()))
        key, text, scores = json.loads(pipe.recv_bytes(MOST_BYTES))
        record = judge.scored(from_bytes(text.encode(), key, key), scores)
        _send(pipe, "record", record.key, to_text(record))
    except Inconsistent as error:
        _send(pipe, "misbehaved", str(error))
    except (LeakboardError, ValidationError) as error:
        _send(pipe, "not run", str(error))
    except Exception as error:  # whatever it is, the one who verifies has to see it
        _send(pipe, "not run", f"{type(error).__name__}: {error}")


def _send(pipe: Connection, *event: Any) -> None:
    pipe.send_bytes(json.dumps(event).encode())
