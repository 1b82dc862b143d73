"""A plan on a Ray cluster: placement and retries are Ray's, the records are the store's.

A task of Ray runs one cell. Ray gives it to a process that has run one before, where it can, and that
process has kept the plan with its data and models.
"""

from __future__ import annotations

import os
import socket
from functools import lru_cache
from typing import Any

from leakboard.bench.contracts import LeakboardError, MissingExtra, Record
from leakboard.bench.records import Store, has_locks
from leakboard.bench.running.cells import ended
from leakboard.bench.running.job import Job
from leakboard.bench.running.plan import Plan, Planned
from leakboard.bench.running.reporting import Reporter
from leakboard.bench.running.runner import Runner

ANSWERS = 5.0
"""Seconds in which the head of a cluster has to answer."""


def run_on_ray(
    job: Job,
    plan: Plan,
    reporter: Reporter,
    address: str,
    gpu_memory: float | None,
    attempts: int,
) -> list[Record]:
    """Runs the cells of a job as tasks of Ray and returns their records, in the order of the plan.

    Args:
        address: "auto" for the cluster of the environment or of this machine, else its HOST:PORT.
        gpu_memory: GiB that a cell takes of a GPU; without it a cell on a GPU has it for itself.
        attempts: how often a cell is tried at which its process dies; then a record says so.

    Raises:
        MissingExtra: Ray is not installed.
        LeakboardError: no cluster answers, or what ended a task that would end all others, too.
    """
    ray = _ray()
    connected = not ray.is_initialized()
    if connected:
        _connect(ray, address)
    try:
        gpus = _share(gpu_memory) if job.device.startswith("cuda") else 0.0
        task = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=attempts - 1)(run_one)
        _drive(ray, task, job, plan, reporter)
    finally:
        if connected:  # what was started here ends with it
            ray.shutdown()
    return [job.store.require(key) for key in job.keys]


def run_one(packed: bytes, key: str) -> bool:
    """What a task does: one cell. Returns whether it had its record before."""
    import torch

    torch.set_num_threads(1)
    runner, cells = _prepared(packed)
    before = runner.store.written(key)
    runner.one(cells[key])
    return runner.store.written(key) == before


@lru_cache(maxsize=1)
def _prepared(packed: bytes) -> tuple[Runner, dict[str, Planned]]:
    """Kept by the process between its cells: the plan with its data and models."""
    import cloudpickle

    job: Job = cloudpickle.loads(packed)
    if not has_locks(job.folder):
        raise LeakboardError(
            f"{job.folder} is another folder on {socket.gethostname()}; choose one with --out that "
            "every machine of the cluster shares, such as on NFS 4"
        )
    # Ray may give this machine as many cells at once as it has processors.
    beside = os.cpu_count() or 1
    runner = Runner(job.plan, job.store, Reporter(), job.transcripts, job.since, workers=beside)
    return runner, {planned.cell.key: planned for planned in job.plan.cells}


def _drive(ray: Any, task: Any, job: Job, plan: Plan, reporter: Reporter) -> None:
    """Hands out every cell once what it needs is there, and tells what comes back."""
    packed = ray.put(job.packed())
    waiting = {planned.cell.key: planned for planned in plan.cells}
    running: dict[Any, Planned] = {}
    try:
        while waiting or running:
            unfinished = waiting.keys() | {planned.cell.key for planned in running.values()}
            for key in [k for k, p in waiting.items() if not unfinished & set(p.needs)]:
                running[task.remote(packed, key)] = waiting.pop(key)
            (done, *_), _ = ray.wait(list(running))
            planned = running.pop(done)
            reporter.started(planned)
            reused = _outcome(ray, done, planned, job.store, job.device, reporter)
            reporter.finished(job.store.require(planned.cell.key), reused)
    except BaseException:
        for reference in running:
            ray.cancel(reference, force=True)
        raise


def _outcome(
    ray: Any, done: Any, planned: Planned, store: Store, device: str, reporter: Reporter
) -> bool:
    """Whether the cell had its record before; one is written here where its process died."""
    try:
        reused: bool = ray.get(done)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, LeakboardError):
            raise LeakboardError(str(error.cause)) from None
        raise
    except ray.exceptions.RayError as error:
        reason = f"its process died in each attempt ({str(error).splitlines()[0]})"
        reporter.warned(f"{planned.defense}: {reason}")
        with store.claim(planned.cell.key) as mine:
            if mine and store.read(planned.cell.key) is None:
                store.write(ended(planned, "failed", reason, device))
        return False
    return reused


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingExtra("Ray (runs on several machines)", "ray") from None
    return ray


def _connect(ray: Any, address: str) -> None:
    """Raises LeakboardError where no cluster answers at the address."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody is told of a run unasked
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS") or ray._private.utils.read_ray_address() or "local"
        # The head of a cluster that was killed leaves its address, for which Ray would wait.
        if "RAY_ADDRESS" not in os.environ and _silent(address):
            address = "local"
    if address == "local":
        ray.init(address, include_dashboard=False, **quiet)
        return
    try:
        if why := _silent(address):
            raise why
        ray.init(address, **quiet)
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        raise LeakboardError(
            f"--ray '{address}': no cluster answers there ({error}). Start one by `ray start --head` "
            "and give the HOST:PORT that it prints, or 'auto'"
        ) from error


def _silent(address: str) -> Exception | None:
    """Why nothing listens at HOST:PORT; None where something does."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), ANSWERS).close()
    except (OSError, ValueError) as error:
        return error
    return None


def _share(gpu_memory: float | None) -> float:
    """The share of a GPU that a cell takes."""
    import torch

    if gpu_memory is None:
        return 1.0
    total = torch.cuda.get_device_properties(0).total_memory / 2**30
    if gpu_memory > total:
        raise LeakboardError(f"--gpu-memory {gpu_memory:g}GiB: the GPU here has {total:.1f} GiB")
    return gpu_memory / total
