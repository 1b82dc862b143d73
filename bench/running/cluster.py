"""Runs a plan on a Ray cluster: Ray places and retries the cells, the store holds the records.

Each Ray task runs one cell. Ray reuses processes, and each process caches the plan with its data and models.
"""

from __future__ import annotations

import os
import socket
from functools import lru_cache
from typing import Any

from leakboard.bench.contracts import LeakboardError, MissingExtra, Record
from leakboard.bench.records import Store, has_locks
from leakboard.bench.running.cells import record_without_result
from leakboard.bench.running.plan import Plan, PlannedCell
from leakboard.bench.running.reporting import Reporter
from leakboard.bench.running.runner import Runner
from leakboard.bench.running.workers import Job

CONNECT_SECONDS = 5.0
"""Time in which the head of a cluster must answer."""


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
        address: "auto" for the cluster of the environment or of this machine, otherwise HOST:PORT.
        gpu_memory: GiB of GPU memory per cell; without it each cell has a GPU of its own.
        attempts: tries of a cell whose process dies, before the cell is recorded as failed.

    Raises:
        MissingExtra: Ray is not installed.
        LeakboardError: no cluster answers, or a task failed in a way that all others would.
    """
    ray = _ray()
    connected = not ray.is_initialized()
    if connected:
        _connect(ray, address)
    try:
        gpus = _gpu_share(gpu_memory) if job.device.startswith("cuda") else 0.0
        task = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=attempts - 1)(run_cell_task)
        _drive(ray, task, job, plan, reporter)
    finally:
        if connected:  # close only a connection of our own
            ray.shutdown()
    return [job.store.require(key) for key in job.keys]


def run_cell_task(packed: bytes, key: str) -> bool:
    """Ray task that runs one cell. Returns True if the cell had its record before."""
    import torch

    torch.set_num_threads(1)
    runner, cells = _load_job(packed)
    before = runner.store.written(key)
    runner.run_one(cells[key])
    return runner.store.written(key) == before


@lru_cache(maxsize=1)
def _load_job(packed: bytes) -> tuple[Runner, dict[str, PlannedCell]]:
    """The plan with its data and models, cached by the process between cells."""
    import cloudpickle

    job: Job = cloudpickle.loads(packed)
    if not has_locks(job.folder):
        raise LeakboardError(
            f"{job.folder} is a different folder on {socket.gethostname()}; choose a folder with --out that "
            "all machines of the cluster share, such as on NFS 4"
        )
    # Ray may run as many cells at once on this machine as it has processors.
    workers = os.cpu_count() or 1
    runner = Runner(
        job.plan, job.store, Reporter(), job.transcripts, job.since, workers=workers, isolated=True
    )
    return runner, {planned.cell.key: planned for planned in job.plan.cells}


def _drive(ray: Any, task: Any, job: Job, plan: Plan, reporter: Reporter) -> None:
    """Submits each cell once its shadow models are trained, and reports the results."""
    packed = ray.put(job.packed())
    waiting = {planned.cell.key: planned for planned in plan.cells}
    running: dict[Any, PlannedCell] = {}
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
    ray: Any, done: Any, planned: PlannedCell, store: Store, device: str, reporter: Reporter
) -> bool:
    """True if the cell had its record before; if its process died, the failure is recorded here."""
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
                store.write(record_without_result(planned, "failed", reason, device))
        return False
    return reused


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingExtra("Ray (runs on several machines)", "ray") from None
    return ray


def _connect(ray: Any, address: str) -> None:
    """Connects to a cluster; raises LeakboardError if none answers at the address."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage statistics without consent
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS") or ray._private.utils.read_ray_address() or "local"
        # The head of a cluster that was killed leaves its address, for which Ray would wait.
        if "RAY_ADDRESS" not in os.environ and _connection_error(address):
            address = "local"
    if address == "local":
        ray.init(address, include_dashboard=False, **quiet)
        return
    try:
        if why := _connection_error(address):
            raise why
        ray.init(address, **quiet)
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        raise LeakboardError(
            f"--ray '{address}': no cluster responds there ({error}). Start one by `ray start --head` "
            "and give the HOST:PORT that it prints, or 'auto'"
        ) from error


def _connection_error(address: str) -> Exception | None:
    """The error of connecting to HOST:PORT, or None."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        return error
    return None


def _gpu_share(gpu_memory: float | None) -> float:
    """The share of a GPU that a cell needs."""
    import torch

    if gpu_memory is None:
        return 1.0
    total = torch.cuda.get_device_properties(0).total_memory / 2**30
    if gpu_memory > total:
        raise LeakboardError(f"--gpu-memory {gpu_memory:g}GiB: the GPU here has {total:.1f} GiB")
    return gpu_memory / total
