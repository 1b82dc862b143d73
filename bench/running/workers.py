"""Several processes on this machine that run one plan; the locks of the store keep them apart.

Each worker goes through all cells and takes what nobody has taken yet, so there is no queue that could
be lost. This process shows what they do, and starts another one where one dies.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import psutil

from leakboard.bench.contracts import LeakboardError, Record
from leakboard.bench.running.cells import ended
from leakboard.bench.running.job import Job
from leakboard.bench.running.plan import Planned
from leakboard.bench.running.reporting import Reporter
from leakboard.bench.running.runner import Runner

OFTEN = 0.1
"""Seconds between two messages about a bar."""
PATIENCE = 10.0
"""Seconds that workers have to end by themselves after Ctrl-C."""


def run_together(
    job: Job, cells: tuple[Planned, ...], reporter: Reporter, attempts: int
) -> list[Record]:
    """Runs the cells of a job by its number of processes and returns their records, in order.

    Args:
        attempts: how often a cell is tried at which a worker dies; then a record says so.

    Raises:
        LeakboardError: too little memory for so many, or what ended a worker.
    """
    check_memory(job.workers)
    crew = Crew(job, cells, reporter, attempts)
    try:
        crew.work()
    finally:
        crew.dismiss()
    return [job.store.require(key) for key in job.keys]


def check_memory(workers: int) -> None:
    """Raises LeakboardError where so many processes with data and models like this one do not fit."""
    own, free = psutil.Process().memory_info().rss, psutil.virtual_memory().available
    if workers * own > free:
        raise LeakboardError(
            f"--workers {workers}: each takes at least {own / 2**30:.1f} GiB, and {free / 2**30:.1f} "
            f"GiB of memory are free. At most {max(1, free // own)} fit"
        )


@dataclass
class Worker:
    """A process and what is known of it.

    Attributes:
        first: the number of the cell with which it begins.
        at: the key of the cell that it is at.
        came: whether it has said anything yet.
    """

    process: BaseProcess
    events: Connection
    first: int
    at: str = ""
    came: bool = False


class Crew:
    """The workers of one run: hires, listens, replaces who dies, and dismisses."""

    def __init__(
        self, job: Job, cells: tuple[Planned, ...], reporter: Reporter, attempts: int
    ) -> None:
        self.job, self.reporter, self.attempts = job, reporter, attempts
        self.packed = job.packed()
        self.cells = {planned.cell.key: planned for planned in cells}
        self.finished: set[str] = set()
        self.deaths: Counter[str] = Counter()
        # Threads do not survive a fork; a server without any makes further processes in no time.
        self.context = mp.get_context("forkserver")
        self.context.set_forkserver_preload([__name__, "transformers", "peft"])
        size = len(cells) / job.workers
        self.lanes = [self._hired(round(i * size)) for i in range(job.workers)]

    def work(self) -> None:
        """Until all cells have their records.

        Raises:
            LeakboardError: what ended a worker that cannot go on.
        """
        while lanes := {w.events: i for i, w in enumerate(self.lanes) if not w.events.closed}:
            for events in wait(list(lanes)):
                assert isinstance(events, Connection)
                lane = lanes[events]
                try:
                    self._heard(lane, *events.recv())
                except (EOFError, OSError):
                    events.close()
                    self._gone(lane)

    def dismiss(self) -> None:
        """Ends all workers, as Ctrl-C does, which a terminal has sent to them, too."""
        for worker in self.lanes:
            worker.events.close()
            if worker.process.is_alive() and worker.process.pid:
                os.kill(worker.process.pid, signal.SIGINT)
        until = time.monotonic() + PATIENCE
        for worker in self.lanes:
            worker.process.join(max(0.0, until - time.monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()

    def _hired(self, first: int) -> Worker:
        events, theirs = self.context.Pipe(duplex=False)
        process = self.context.Process(target=_work, args=(self.packed, first, theirs), daemon=True)
        process.start()
        theirs.close()
        return Worker(process, events, first)

    def _heard(self, lane: int, event: str, *said: Any) -> None:
        worker = self.lanes[lane]
        worker.came = True
        if event == "started":
            (worker.at,) = said
            self.reporter.started(self.cells[worker.at], lane)
        elif event == "moved":
            what, done, total = said
            self.reporter.moved(what, done, total, lane)
        elif event == "finished":
            worker.at = ""
            self._done(*said)
        elif event == "warned":
            self.reporter.warned(*said)
        elif event == "stopped":
            raise LeakboardError(*said)

    def _done(self, key: str, reused: bool) -> None:
        """A cell that several workers saw finished is told once."""
        if key not in self.finished:
            self.finished.add(key)
            self.reporter.finished(self.job.store.require(key), reused)

    def _gone(self, lane: int) -> None:
        """A worker ended: because nothing was left to do, or it died and has a successor."""
        worker = self.lanes[lane]
        worker.process.join()
        if worker.process.exitcode == 0:
            return
        why = f"worker {lane + 1} died ({_cause(worker.process.exitcode)})"
        if not worker.came:
            raise LeakboardError(
                f"{why} before it did anything. What it printed is above; see that memory suffices, and "
                "run again"
            )
        if worker.at:
            self._failed(self.cells[worker.at], why)
        self.lanes[lane] = self._hired(worker.first)

    def _failed(self, planned: Planned, why: str) -> None:
        """Tried again, or a record that says why not; what was measured before still stands."""
        store, key = self.job.store, planned.cell.key
        self.deaths[key] += 1
        if self.deaths[key] < self.attempts:
            self.reporter.warned(f"{why} at {planned.defense}; the cell is tried again")
            return
        self.reporter.warned(f"{why} at {planned.defense}, which is given up")
        reason = f"{why}, as in each of {self.deaths[key]} attempts"
        with store.claim(key) as mine:
            earlier = store.read(key) if mine else None
            if mine and (earlier is None or earlier.status == "failed"):
                store.write(ended(planned, "failed", reason, self.job.device))


def _cause(code: int | None) -> str:
    if code is not None and code < 0:
        killed = ", as when memory runs out" if code == -9 else ""
        return f"signal {-code}{killed}"
    return f"exit code {code}"


class Telling(Reporter):
    """Tells another process, which shows it. Where that one is gone, the worker ends, as by Ctrl-C:
    what a cell reports as its own failure would become a record."""

    def __init__(self, events: Connection) -> None:
        self.events = events
        self.last, self.what = 0.0, ""

    def started(self, planned: Planned, lane: int = 0) -> None:
        self._tell("started", planned.cell.key)

    def moved(self, what: str, done: int, total: int, lane: int = 0) -> None:
        now = time.monotonic()
        if done in (0, total) or what != self.what or now - self.last > OFTEN:
            self.last, self.what = now, what
            self._tell("moved", what, done, total)

    def finished(self, record: Record, reused: bool) -> None:
        self._tell("finished", record.key, reused)

    def warned(self, message: str) -> None:
        self._tell("warned", message)

    def _tell(self, *said: Any) -> None:
        try:
            self.events.send(said)
        except OSError:
            raise KeyboardInterrupt from None


def _work(packed: bytes, first: int, events: Connection) -> None:
    """What a worker does."""
    told: Callable[..., None] = events.send
    with suppress(BrokenPipeError, KeyboardInterrupt):
        try:
            import cloudpickle
            import torch

            job: Job = cloudpickle.loads(packed)
            torch.set_num_threads(job.threads)
            Runner(
                job.plan, job.store, Telling(events), job.transcripts, job.since, first, job.workers
            ).run()
        except LeakboardError as error:
            told(("stopped", str(error)))
