"""Runs a cell again in two subprocesses with a time limit: its method in a sandbox where the system has one, and a judge.

The judge has the labels of the evaluated split and no method; the process of the method has no such labels.
"""

from __future__ import annotations

import json
import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
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
from leakboard.bench.submissions.judge import MOST_BYTES, MethodData, Order, serve
from leakboard.bench.submissions.sandbox import pack, work_inside
from leakboard.bench.tasks import data_folder

MOST_EFFECTS = 5


class NotRun(Exception):
    """The cell did not finish; the message gives the reason."""


class Misbehaved(Exception):
    """A method did what no method may do; the message says what."""


def run_in_subprocess(order: Order, minutes: float, reporter: Reporter) -> Record:
    """Run a cell again in subprocesses, and return its record.

    Raises:
        NotRun: the cell cannot be run on this machine, a process died, or the time limit was exceeded.
        Misbehaved: a method wrote or read files, started a process, opened a connection, replaced code of this
            package, or changed a score.
    """
    limit = Limit(minutes)
    with (
        tempfile.TemporaryDirectory(prefix="leakboard-rerun-") as place,
        _process(_preloaded(), serve, order) as judge,
    ):
        limit.receive(judge, reporter, "given")
        given = judge.pipe.recv_bytes()
        hidden = _hidden(order)
        inside = Path(place), hidden, pack(_work, order, given)
        with _process(get_context("spawn"), work_inside, *inside) as method:
            result = limit.receive(method, reporter, "result")
        judge.pipe.send_bytes(json.dumps(result).encode())
        key, text = limit.receive(judge, reporter, "record")
    if key != order.key and not order.swapped:
        raise NotRun(f"its process ran another cell, {key}")
    return from_bytes(text.encode(), key, order.key)


@dataclass(frozen=True)
class Child:
    """A process, and the end of its pipe on this side."""

    process: BaseProcess
    pipe: Connection


def _preloaded() -> Any:
    """A way to start judges quickly: from a fresh interpreter that has loaded this package and no method."""
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload([serve.__module__])
    return context


@contextmanager
def _process(context: Any, target: Callable[..., None], *args: Any) -> Iterator[Child]:
    """A process that is given its end of a pipe first, and is killed when the block ends."""
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(theirs, *args), daemon=True)
    process.start()
    theirs.close()
    try:
        yield Child(process, ours)
    finally:
        process.kill()
        process.join()
        ours.close()


class Limit:
    """The time limit of all processes of a cell."""

    def __init__(self, minutes: float) -> None:
        self.minutes, self.end = minutes, time.monotonic() + 60 * minutes

    def receive(self, child: Child, reporter: Reporter, wanted: str) -> list[Any]:
        """Details of the event that is waited for; others are forwarded. Nothing is unpickled.

        Raises:
            NotRun, Misbehaved: see `run_in_subprocess`.
        """
        details: list[Any]
        try:
            while child.pipe.poll(max(0.0, self.end - time.monotonic())):
                event, *details = json.loads(child.pipe.recv_bytes(MOST_BYTES))
                if event == wanted:
                    return details
                if event == "not run":
                    raise NotRun(str(details[0]))
                if event == "misbehaved":
                    raise Misbehaved(str(details[0]))
                if event != "sandbox":
                    forward_event(reporter, event, *details)
                elif details[0] is not None:
                    reporter.warned(f"the cell is run again without a sandbox: {details[0]}")
        except EOFError:
            child.process.join(5)
            raise NotRun(f"its process died (code {child.process.exitcode})") from None
        except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
            raise NotRun(
                f"its process sent something that is not an event ({type(error).__name__})"
            ) from error
        raise NotRun(
            f"it did not finish within {self.minutes:g} minutes; raise the limit with --minutes"
        )


def _hidden(order: Order) -> Path | None:
    """The folder of data, which a sandbox hides unless something else that is needed lies in it."""
    folder = data_folder(order.data)
    if folder is None:
        return None
    folder = folder.resolve()
    needed = [Path(sys.prefix), Path(__file__), Path(order.model)]
    return None if any(p.resolve().is_relative_to(folder) for p in needed) else folder


def _work(pipe: Any, order: Order, given: bytes) -> None:
    """Run the cell of an order with the data that are given, and send its record and its predictions."""
    torch.set_num_threads(order.threads)
    provenance(order.device)  # asks git, once
    before, effects = loaded_package(), list[str]()

    def refuse(effect: str) -> None:
        effects.append(effect)
        raise PermissionError(f"{effect}: not allowed while a submission is run again")

    scores: list[Any] = []
    try:
        data = pickle.loads(given)
        with reporting(refuse):
            record = run_order(order, PipeReporter(pipe), refuse, data, scores.append)
        effects += [f"replaces {name}" for name in changed_code(before)]
        if effects:
            pipe.send(("misbehaved", "; ".join(list(dict.fromkeys(effects))[:MOST_EFFECTS])))
        pipe.send(("result", record.key, to_text(record), scores[-1] if scores else None))
    except (LeakboardError, ValidationError) as error:
        pipe.send(("not run", str(error)))
    except Exception as error:  # whatever it is, the one who verifies has to see it
        pipe.send(("not run", f"{type(error).__name__}: {error}"))


def run_order(
    order: Order,
    reporter: Reporter,
    refuse: Callable[[str], None] | None = None,
    given: MethodData | None = None,
    export: Callable[[Any], None] | None = None,
) -> Record:
    """Run a cell again in this process, without a time limit, and return its record.

    Args:
        refuse: given the files of the data folder that methods try to read.
        given: data without labels of the evaluated split; None to read all of them here.
        export: given the predictions, if `given` is.
    """
    record = from_bytes(order.record, order.key, order.key)
    tasks = given.tasks if given else None
    plan = plan_reproduction(record, order.data, order.device, order.model, tasks)
    (target,) = (planned for planned in plan.cells if planned.cell.key == record.key)

    def read(key: str) -> Record | None:
        return from_bytes(order.shadows[key], key, key) if key in order.shadows else None

    if order.swapped:
        recording = target.cell.record.model_copy(update={"swapped": order.swapped})
        cell = target.cell.model_copy(update={"record": recording})
        target = replace(target, cell=cell, pairings=())
    planned, waiting = with_shadows(target, read)
    plants = given.plants if given else None
    context = context_of(plan, planned, reporter.track, isolated=True, plants=plants, export=export)
    unreadable = [folder] if (folder := data_folder(order.data)) else []
    with reporting(refuse, *unreadable) if refuse else nullcontext():
        again = run_cell(context)
    found: dict[str, Any] = {"leaks": [*again.leaks, *waiting]}
    return again.model_copy(update=found)
