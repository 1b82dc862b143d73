"""Where the cells of a plan run: in this process, in several of this machine, or on a Ray cluster."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from leakboard.bench.contracts import LeakboardError, Record
from leakboard.bench.records import Store, check_locks
from leakboard.bench.running.cluster import run_on_ray
from leakboard.bench.running.job import Job, keys_of, made_of
from leakboard.bench.running.plan import Plan
from leakboard.bench.running.reporting import Reporter
from leakboard.bench.running.runner import Runner
from leakboard.bench.running.secrecy import secret_of
from leakboard.bench.running.workers import run_together


@dataclass(frozen=True)
class Engine:
    """How many cells run at once, and where.

    Attributes:
        workers: processes on this machine; its processors are shared out among them.
        ray: "auto" for a cluster of this machine, or of the environment; or the address of one.
        gpu_memory: GiB that a cell takes of a GPU; so many cells share one as fit (Ray only).
        shard: part i of n of the plan, counted from 1, for the jobs of an array that share a folder.
        attempts: how often a cell is tried at which its process dies; then a record says so.

    Raises:
        LeakboardError: numbers that make no sense, or that do not go together.
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
            raise LeakboardError("--ray places the cells itself; leave --workers out")
        if self.gpu_memory is not None and (self.ray is None or self.gpu_memory <= 0):
            raise LeakboardError("--gpu-memory, a number of GiB above 0, goes with --ray")
        if self.shard and not 1 <= self.shard[0] <= self.shard[1]:
            raise LeakboardError(
                f"--shard: expected I/N with I from 1 to N, got {self.shard[0]}/{self.shard[1]}"
            )

    def part(self, plan: Plan) -> Plan:
        """What of a plan is run."""
        return plan.part(self.shard[0] - 1, self.shard[1]) if self.shard else plan

    def run(
        self,
        plan: Plan,
        store: Store,
        reporter: Reporter,
        data: Path | None = None,
        transcripts: Path | None = None,
    ) -> list[Record]:
        """Runs what is missing and returns the records of all cells, in the order of the plan.

        Args:
            plan: as `part` gives it.
            data: folder of datasets, from which workers lay out the plan again.

        Raises:
            LeakboardError: records cannot be written there, or an extra is missing.
        """
        check_locks(store.folder)
        plan = replace(plan, secret=secret_of(store, reporter))
        if self.ray is None and self.workers == 1:
            return Runner(plan, store, reporter, transcripts).run()
        job = Job(
            suite=plan.suite,
            data=data,
            device=next(iter(plan.backbones.values())).device,
            folder=store.folder.resolve(),
            transcripts=transcripts and transcripts.resolve(),
            shard=self.shard,
            keys=keys_of(plan),
            made_of=made_of(plan),
            since=store.now(),
            threads=max(1, (os.cpu_count() or 1) // self.workers),
            workers=self.workers,
            twins=plan.twins,
            secret=plan.secret,
        )
        if self.ray is not None:
            return run_on_ray(job, plan, reporter, self.ray, self.gpu_memory, self.attempts)
        return run_together(job, plan.cells, reporter, self.attempts)
