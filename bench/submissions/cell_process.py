"""Runs a cell in a subprocess, which is killed at a time limit."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

from leakboard.bench.contracts import LeakboardError, Record
from leakboard.bench.records import from_bytes, to_text
from leakboard.bench.running import (
    PipeReporter,
    Reporter,
    context_of,
    forward_event,
    plan_reproduction,
    run_cell,
    with_shadows,
)


class NotRun(Exception):
    """The cell did not finish; the message gives the reason."""


@dataclass(frozen=True)
class Order:
    """A cell to run in a subprocess, with its inputs.

    Attributes:
        record: the file of the record.
        shadows: record files of its shadow models by key, which are used without running them again.
        model: name or folder of the cell's model.
        threads: number of threads, which affects the last digits of results.
    """

    key: str
    record: bytes
    shadows: Mapping[str, bytes]
    data: Path | None
    device: str
    model: str
    threads: int


def run_in_subprocess(order: Order, minutes: float, reporter: Reporter) -> Record:
    """Run a cell again in a subprocess, and return its record.

    Raises:
        NotRun: the cell cannot be run on this machine, its process died, or it exceeded the time limit.
    """
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, order), daemon=True)
    end = time.monotonic() + 60 * minutes
    process.start()
    theirs.close()
    try:
        while ours.poll(max(0.0, end - time.monotonic())):
            event, *details = ours.recv()
            if event == "record":
                return from_bytes(details[0], order.key, order.key)
            if event == "not run":
                raise NotRun(details[0])
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
    try:
        pipe.send(("record", to_text(run_order(order, PipeReporter(pipe))).encode()))
    except (LeakboardError, ValidationError) as error:
        pipe.send(("not run", str(error)))
    except Exception as error:  # whatever it is, the one who verifies has to see it
        pipe.send(("not run", f"{type(error).__name__}: {error}"))


def run_order(order: Order, reporter: Reporter) -> Record:
    """Run a cell again in this process, without a time limit, and return its record."""
    record = from_bytes(order.record, order.key, order.key)
    plan = plan_reproduction(record, order.data, order.device, order.model)
    (target,) = (planned for planned in plan.cells if planned.cell.key == record.key)

    def read(key: str) -> Record | None:
        return from_bytes(order.shadows[key], key, key) if key in order.shadows else None

    planned, waiting = with_shadows(target, read)
    again = run_cell(context_of(plan, planned, reporter.track, isolated=True))
    found: dict[str, Any] = {"leaks": [*again.leaks, *waiting]}
    return again.model_copy(update=found)
