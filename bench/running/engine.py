"""Chooses where the cells of a plan run: this process, several processes, or a Ray cluster."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from leakboard.bench.contracts import LeakboardError, Record
from leakboard.bench.records import Store, check_locks
from leakboard.bench.running.cluster import run_on_ray
from leakboard.bench.running.plan import Plan
from leakboard.bench.running.reporting import Reporter
from leakboard.bench.running.runner import Runner
from leakboard.bench.running.secret import run_secret
from leakboard.bench.running.workers import Job, cell_keys, input_hashes, run_in_processes


@dataclass(frozen=True)
class Engine:
    """The number of cells that run at once, and where they run.

    Attributes:
        workers: processes on this machine, which share its processors evenly.
        ray: "auto" for the Ray cluster of the environment or of this machine, or the address of one.
        gpu_memory: GiB of GPU memory per cell, so that several cells share a GPU (Ray only).
        shard: (i, n) runs part i of n of the plan, counted from 1, as one job of an array.
        attempts: tries of a cell whose process dies, before the cell is recorded as failed.

    Raises:
        LeakboardError: a value is out of range, or two options exclude each other.
    """

    workers: int = 1
    ray: str | None = None
    gpu_memory: float | None = None
    shard: tuple[int, int] | None = None
    attempts: int = 2

    def __post_init__(self) -> None:
        if min(self.workers, self.attempts) < 1:
            raise LeakboardError("workers and attempts must be whole numbers of at least 1")
        if self.ray is not None and self.workers > 1:
            raise LeakboardError("--ray places the cells itself; omit --workers")
        if self.gpu_memory is not None and (self.ray is None or self.gpu_memory <= 0):
            raise LeakboardError("--gpu-memory must be a number of GiB above 0, and needs --ray")
        if self.shard and not 1 <= self.shard[0] <= self.shard[1]:
            raise LeakboardError(
                f"--shard: expected I/N with I from 1 to N, got {self.shard[0]}/{self.shard[1]}"
            )

    def part(self, plan: Plan) -> Plan:
        """The part of a plan that this engine runs."""
        return plan.part(self.shard[0] - 1, self.shard[1]) if self.shard else plan

    def run(
        self,
        plan: Plan,
        store: Store,
        reporter: Reporter,
        data: Path | None = None,
        transcripts: Path | None = None,
    ) -> list[Record]:
        """Runs the cells without a record and returns the records of all cells, in the order of the plan.

        Args:
            plan: the result of `part`.
            data: folder of datasets, from which workers make the plan again.

        Raises:
            LeakboardError: records cannot be written there, or an extra is missing.
        """
        check_locks(store.folder)
        plan = replace(plan, secret=run_secret(store, reporter))
        if self.ray is None and self.workers == 1:
            return Runner(plan, store, reporter, transcripts, isolated=True).run()
        job = Job(
            suite=plan.suite,
            data=data,
            device=next(iter(plan.backbones.values())).device,
            folder=store.folder.resolve(),
            transcripts=transcripts and transcripts.resolve(),
            shard=self.shard,
            keys=cell_keys(plan),
            input_hashes=input_hashes(plan),
            since=store.now(),
            threads=max(1, (os.cpu_count() or 1) // self.workers),
            workers=self.workers,
            twins=plan.twins,
            secret=plan.secret,
        )
        if self.ray is not None:
            return run_on_ray(job, plan, reporter, self.ray, self.gpu_memory, self.attempts)
        return run_in_processes(job, plan.cells, reporter, self.attempts)
