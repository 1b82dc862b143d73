"""Worker processes on this machine that run one plan; the locks of the store separate their cells.

Each worker goes through all cells and takes the next one that is not locked, so there is no queue that could
be lost. This process shows their progress and replaces a worker that dies.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from leakboard.bench import __version__
from leakboard.bench.contracts import LeakboardError, Record
from leakboard.bench.records import Store
from leakboard.bench.running.cells import record_without_result
from leakboard.bench.running.isolation import carry_files
from leakboard.bench.running.plan import Plan, PlannedCell, make_plan
from leakboard.bench.running.reporting import PipeReporter, Reporter, forward_event
from leakboard.bench.running.runner import Runner
from leakboard.bench.suites import Suite

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext

SHUTDOWN_SECONDS = 10.0
"""Time that workers have to end by themselves after Ctrl-C."""


@dataclass(frozen=True)
class Job:
    """A run that can be sent to another process, which plans it again by itself.

    Attributes:
        keys: of all cells, in the order of the plan; a worker whose plan has other keys stops.
        input_hashes: hashes and versions by description, to say what differs in a worker.
        since: start of the run, by the clock of the store.
        threads: CPU threads of each worker.
        workers: number of workers on this machine.
        twins, secret: as in the plan.
    """

    suite: Suite
    data: Path | None
    device: str
    folder: Path
    transcripts: Path | None
    shard: tuple[int, int] | None
    keys: tuple[str, ...]
    input_hashes: dict[str, str]
    since: float
    threads: int
    workers: int
    twins: bool
    secret: str = field(repr=False)

    @property
    def store(self) -> Store:
        return Store(self.folder)

    def packed(self) -> bytes:
        """Serialises the job, with the code of methods that another process could not import."""
        import cloudpickle

        carry_files(*(row.defense for row in self.suite.defenses), *self.suite.attacks)
        packed: bytes = cloudpickle.dumps(self)
        return packed

    @cached_property
    def plan(self) -> Plan:
        """The plan, made again in this process.

        Raises:
            LeakboardError: its cells differ from those of the job: other data, weights or versions.
        """
        plan = make_plan(self.suite, self.data, self.device, self.twins)
        if self.shard:
            plan = plan.part(self.shard[0] - 1, self.shard[1])
        if cell_keys(plan) != self.keys:
            hashes = input_hashes(plan)
            differing = [
                name for name, value in self.input_hashes.items() if hashes.get(name) != value
            ]
            raise LeakboardError(
                "a worker plans other cells than this run, because of different inputs: "
                f"{', '.join(differing) or 'the methods'}. Install the same versions of leakboard and of "
                "plug-ins there, and check that --data and --model contain the same files"
            )
        return replace(plan, secret=self.secret)


def cell_keys(plan: Plan) -> tuple[str, ...]:
    """Keys of all cells, in the order of the plan."""
    return tuple(planned.cell.key for planned in plan.cells)


def input_hashes(plan: Plan) -> dict[str, str]:
    """Hashes of data and weights, and the version of leakboard, by description."""
    data = {f"the data of {task.name}": key for key, task in plan.tasks.items()}
    weights = {f"the weights of {model.name}": key for key, model in plan.backbones.items()}
    return data | weights | {"the version of leakboard": __version__}


def run_in_processes(
    job: Job, cells: tuple[PlannedCell, ...], reporter: Reporter, attempts: int
) -> list[Record]:
    """Runs the cells of a job in its number of processes and returns their records, in order.

    A cell for which memory ran out beside others is run again alone, after them.

    Args:
        attempts: tries of a cell whose worker dies, before the cell is recorded as failed.

    Raises:
        LeakboardError: too little memory for so many workers, or an error that stopped a worker.
    """
    check_memory(job.workers)
    pool = WorkerPool(job, cells, reporter, attempts)
    pool.run()
    if pool.crowded:
        alone = replace(job, workers=1, threads=job.threads * job.workers, since=job.store.now())
        WorkerPool(alone, cells, reporter, attempts, pool.finished - pool.crowded).run()
    return [job.store.require(key) for key in job.keys]


def ran_out_of_memory(record: Record) -> bool:
    """True if memory ran out for the cell, or for one of its attacks."""
    return "out-of-memory" in {record.status, *(leak.status for leak in record.leaks)}


def check_memory(workers: int) -> None:
    """Raises LeakboardError if so many processes with the data and models of this one do not fit into memory."""
    own, free = psutil.Process().memory_info().rss, psutil.virtual_memory().available
    if workers * own > free:
        raise LeakboardError(
            f"--workers {workers}: each takes at least {own / 2**30:.1f} GiB, and {free / 2**30:.1f} "
            f"GiB of memory are free. At most {max(1, free // own)} fit"
        )


def start_server() -> None:
    """Starts the process from which workers are forked; it imports libraries while this process goes on."""
    from multiprocessing.forkserver import ensure_running  # not on Windows

    _server_context()
    ensure_running()


def _server_context() -> ForkServerContext:
    # Threads do not survive a fork; a server process without threads forks further processes quickly.
    context = mp.get_context("forkserver")
    context.set_forkserver_preload([__name__, "transformers", "peft"])
    return context


@dataclass
class Worker:
    """A worker process and its state.

    Attributes:
        first: number of the cell with which it begins.
        cell_key: key of the cell that it is running; empty between cells.
        has_reported: whether it has sent any event yet.
    """

    process: BaseProcess
    events: Connection
    first: int
    cell_key: str = ""
    has_reported: bool = False


class WorkerPool:
    """The workers of one run: starts them, forwards their events, and replaces one that dies.

    Attributes:
        finished: keys of cells that were reported as finished, or that an earlier pool did.
        crowded: keys of cells for which memory ran out beside those of other workers; not reported yet.
    """

    def __init__(
        self,
        job: Job,
        cells: tuple[PlannedCell, ...],
        reporter: Reporter,
        attempts: int,
        finished: Iterable[str] = (),
    ) -> None:
        self.job, self.reporter, self.attempts = job, reporter, attempts
        self.packed = job.packed()
        self.cells = {planned.cell.key: planned for planned in cells}
        self.finished, self.crowded = set(finished), set[str]()
        self.deaths: Counter[str] = Counter()
        self.context = _server_context()
        size = len(cells) / job.workers
        self.lanes = [self._start_worker(round(i * size)) for i in range(job.workers)]

    def run(self) -> None:
        """Handles events until all cells have their records, and stops the workers.

        Raises:
            LeakboardError: an error that stopped a worker.
        """
        try:
            self._handle_events()
        finally:
            self.stop()

    def _handle_events(self) -> None:
        while lanes := {w.events: i for i, w in enumerate(self.lanes) if not w.events.closed}:
            for events in wait(list(lanes)):
                assert isinstance(events, Connection)
                lane = lanes[events]
                try:
                    self._handle(lane, *events.recv())
                except (EOFError, OSError):
                    events.close()
                    self._handle_exit(lane)

    def stop(self) -> None:
        """Stops all workers as Ctrl-C does; a terminal sends Ctrl-C to them, too."""
        for worker in self.lanes:
            worker.events.close()
            if worker.process.is_alive() and worker.process.pid:
                os.kill(worker.process.pid, signal.SIGINT)
        until = time.monotonic() + SHUTDOWN_SECONDS
        for worker in self.lanes:
            worker.process.join(max(0.0, until - time.monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()

    def _start_worker(self, first: int) -> Worker:
        events, theirs = self.context.Pipe(duplex=False)
        process = self.context.Process(
            target=_run_worker, args=(self.packed, first, theirs), daemon=True
        )
        process.start()
        theirs.close()
        return Worker(process, events, first)

    def _handle(self, lane: int, event: str, *details: Any) -> None:
        worker = self.lanes[lane]
        worker.has_reported = True
        if event == "started":
            (worker.cell_key,) = details
            self.reporter.started(self.cells[worker.cell_key], lane)
        elif event == "finished":
            worker.cell_key = ""
            self._finish(*details)
        elif event == "stopped":
            raise LeakboardError(*details)
        else:
            forward_event(self.reporter, event, *details, lane=lane)

    def _finish(self, key: str, reused: bool) -> None:
        """Reports a finished cell once, even if several workers report it."""
        if key in self.finished:
            return
        self.finished.add(key)
        record = self.job.store.require(key)
        if self.job.workers > 1 and ran_out_of_memory(record):
            self.crowded.add(key)
            self.reporter.warned(
                f"memory ran out for {self.cells[key].defense} beside {self.job.workers - 1} other workers; "
                "the cell will be run again alone, after the others"
            )
        else:
            self.reporter.finished(record, reused)

    def _handle_exit(self, lane: int) -> None:
        """Replaces a worker that died; one that found no more cells ends with exit code 0."""
        worker = self.lanes[lane]
        worker.process.join()
        if worker.process.exitcode == 0:
            return
        why = f"worker {lane + 1} died ({_cause(worker.process.exitcode)})"
        if not worker.has_reported:
            raise LeakboardError(
                f"{why} before it ran a cell. Its output is above; check that there is enough memory and "
                "run again"
            )
        if worker.cell_key:
            self._retry_or_fail(self.cells[worker.cell_key], why)
        self.lanes[lane] = self._start_worker(worker.first)

    def _retry_or_fail(self, planned: PlannedCell, why: str) -> None:
        """Leaves the cell to be tried again, or records its failure; earlier measurements remain."""
        store, key = self.job.store, planned.cell.key
        self.deaths[key] += 1
        if self.deaths[key] < self.attempts:
            self.reporter.warned(f"{why} while running {planned.defense}; the cell is tried again")
            return
        self.reporter.warned(f"{why} while running {planned.defense}; the cell is not tried again")
        reason = f"{why}, as in each of {self.deaths[key]} attempts"
        with store.claim(key) as mine:
            earlier = store.read(key) if mine else None
            if mine and (earlier is None or earlier.status == "failed"):
                store.write(record_without_result(planned, "failed", reason, self.job.device))


def _cause(code: int | None) -> str:
    if code is not None and code < 0:
        killed = ", as when memory runs out" if code == -9 else ""
        return f"signal {-code}{killed}"
    return f"exit code {code}"


def _run_worker(packed: bytes, first: int, events: Connection) -> None:
    """Entry point of a worker process."""
    with suppress(BrokenPipeError, KeyboardInterrupt):
        try:
            import cloudpickle
            import torch

            job: Job = cloudpickle.loads(packed)
            torch.set_num_threads(job.threads)
            Runner(
                job.plan,
                job.store,
                PipeReporter(events),
                job.transcripts,
                job.since,
                first,
                job.workers,
                isolated=True,
            ).run()
        except LeakboardError as error:
            events.send(("stopped", str(error)))
