"""Runs a cell in a subprocess, which is killed at a time limit, and in a sandbox where the system has one."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

from leakboard.bench.contracts import LeakboardError, Record
from leakboard.bench.methods import changed_code, loaded_package, reporting
from leakboard.bench.records import from_bytes, provenance, to_text
from leakboard.bench.running import (
    PipeReporter,
    Reporter,
    context_of,
    forward_event,
    plan_reproduction,
    run_cell,
    with_shadows,
)
from leakboard.bench.submissions.sandbox import pack, work_inside
from leakboard.bench.tasks import data_folder

MOST_EFFECTS = 5


class NotRun(Exception):
    """The cell did not finish; the message gives the reason."""


class Misbehaved(Exception):
    """A method did what no method may do; the message says what."""


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


def run_in_subprocess(order: Order, minutes: float, reporter: Reporter) -> Record:
    """Run a cell again in a subprocess, and return its record.

    Raises:
        NotRun: the cell cannot be run on this machine, its process died, or it exceeded the time limit.
        Misbehaved: a method wrote or read files, started a process, opened a connection, or replaced code of this
            package.
    """
    with tempfile.TemporaryDirectory(prefix="leakboard-rerun-") as place:
        return _run(order, minutes, reporter, Path(place))


def _run(order: Order, minutes: float, reporter: Reporter, place: Path) -> Record:
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    inside = theirs, place, pack(_work, order)
    process = context.Process(target=work_inside, args=inside, daemon=True)
    end = time.monotonic() + 60 * minutes
    process.start()
    theirs.close()
    try:
        while ours.poll(max(0.0, end - time.monotonic())):
            event, *details = ours.recv()
            if event == "record":
                key, raw = details
                if key != order.key and not order.swapped:
                    raise NotRun(f"its process ran another cell, {key}")
                return from_bytes(raw, key, order.key)
            if event == "not run":
                raise NotRun(details[0])
            if event == "misbehaved":
                raise Misbehaved(details[0])
            if event == "sandbox":
                if details[0] is not None:
                    reporter.warned(f"the cell is run again without a sandbox: {details[0]}")
                continue
            forward_event(reporter, event, *details)
    except EOFError:
        process.join(5)
        raise NotRun(f"its process died (code {process.exitcode})") from None
    finally:
        process.kill()
        process.join()
        ours.close()
    raise NotRun(f"it did not finish within {minutes:g} minutes; raise the limit by --minutes")


def _work(pipe: Connection, order: Order) -> None:
    torch.set_num_threads(order.threads)
    provenance(order.device)  # asks git, once
    before, effects = loaded_package(), list[str]()

    def refuse(effect: str) -> None:
        effects.append(effect)
        raise PermissionError(f"{effect}: not allowed while a submission is run again")

    try:
        with reporting(refuse):
            record = run_order(order, PipeReporter(pipe), refuse)
        effects += [f"replaces {name}" for name in changed_code(before)]
        if effects:
            pipe.send(("misbehaved", "; ".join(list(dict.fromkeys(effects))[:MOST_EFFECTS])))
        pipe.send(("record", record.key, to_text(record).encode()))
    except (LeakboardError, ValidationError) as error:
        pipe.send(("not run", str(error)))
    except Exception as error:  # whatever it is, the one who verifies has to see it
        pipe.send(("not run", f"{type(error).__name__}: {error}"))


def run_order(
    order: Order, reporter: Reporter, refuse: Callable[[str], None] | None = None
) -> Record:
    """Run a cell again in this process, without a time limit, and return its record.

    Args:
        refuse: given the files of the data folder that methods try to read.
    """
    record = from_bytes(order.record, order.key, order.key)
    plan = plan_reproduction(record, order.data, order.device, order.model)
    (target,) = (planned for planned in plan.cells if planned.cell.key == record.key)

    def read(key: str) -> Record | None:
        return from_bytes(order.shadows[key], key, key) if key in order.shadows else None

    if order.swapped:
        recording = target.cell.record.model_copy(update={"swapped": order.swapped})
        cell = target.cell.model_copy(update={"record": recording})
        target = replace(target, cell=cell, pairings=())
    planned, waiting = with_shadows(target, read)
    context = context_of(plan, planned, reporter.track, isolated=True)
    unreadable = [folder] if (folder := data_folder(order.data)) else []
    with reporting(refuse, *unreadable) if refuse else nullcontext():
        again = run_cell(context)
    found: dict[str, Any] = {"leaks": [*again.leaks, *waiting]}
    return again.model_copy(update=found)
