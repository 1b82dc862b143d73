"""Chooses where the cells of a plan run, and the secret seed of their secrets.

Coins, digits of canaries, noise and mixing weights are drawn from a secret of the user who runs cells. A cell, its seed
and this code are public, so an attack could repeat every draw that depends on these alone. The same secret repeats a run.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from leakboard.bench import __version__
from leakboard.bench.contracts import LeakboardError, Record, fingerprint
from leakboard.bench.records import Store, check_locks
from leakboard.bench.running.cluster import run_on_ray
from leakboard.bench.running.plan import Plan
from leakboard.bench.running.reporting import Reporter
from leakboard.bench.running.runner import Runner
from leakboard.bench.running.workers import (
    Job,
    cell_keys,
    input_hashes,
    run_in_processes,
    start_server,
)

VARIABLE = "LEAKBOARD_SECRET"
MIN_LENGTH, MIN_DIFFERENT = 16, 8
"""Characters of a secret, and different ones among them; a weaker one could be guessed."""


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

    Examples:
        >>> import leakboard as lb
        >>> engine = lb.Engine(workers=2, shard=(1, 3))
        >>> r = lb.run("matrix", workers=engine)  # doctest: +SKIP
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
            raise LeakboardError("--ray distributes the cells itself; leave out --workers")
        if self.gpu_memory is not None and (self.ray is None or self.gpu_memory <= 0):
            raise LeakboardError("--gpu-memory must be a number of GiB above 0, and needs --ray")
        if self.shard and not 1 <= self.shard[0] <= self.shard[1]:
            raise LeakboardError(
                f"--shard: expected I/N with I from 1 to N, got {self.shard[0]}/{self.shard[1]}"
            )

    def prepare(self) -> None:
        """Begins to load what workers need; call it before the plan is made, which takes as long."""
        if self.ray is None and self.workers > 1:
            start_server()

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
        finished = store.read_all()
        plan = replace(plan, secret=run_secret(finished, store, reporter))
        for name in changed_code(plan, finished):
            reporter.warned(
                f"{name}: its file has changed since records in {store.folder} were made, but its version has not, so "
                "they are not run again. If the change alters results, raise `version` in the class"
            )
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


def changed_code(plan: Plan, finished: Sequence[Record]) -> list[str]:
    """Methods of a plan whose file is not that of its finished cells, by the same release; a new one tells of changes."""
    records = {record.key: record.provenance for record in finished}
    return sorted(
        {
            name
            for planned in plan.cells
            if (made := records.get(planned.cell.key)) and made.leakboard == __version__
            for name, digits in planned.code.items()
            if made.code.get(name, digits) != digits
        }
    )


def user_secret() -> str:
    """The secret of the environment, or else of the user; the first call draws and stores one.

    Raises:
        LeakboardError: it is too short, or cannot be stored.
    """
    given = os.environ.get(VARIABLE)
    where, secret = (VARIABLE, given) if given is not None else _stored_secret()
    if len(secret) < MIN_LENGTH or len(set(secret)) < MIN_DIFFERENT:
        raise LeakboardError(
            f"{where}: a secret needs at least {MIN_LENGTH} characters, {MIN_DIFFERENT} of them different: records "
            "hold its fingerprint, by which others could guess a weak one. Draw it, for example by "
            "`python -c 'import secrets; print(secrets.token_hex(16))'`"
        )
    return secret


def run_secret(finished: Sequence[Record], store: Store, reporter: Reporter) -> str:
    """The secret for cells whose records go into a store; "" if its finished records were made without one.

    Raises:
        LeakboardError: its records were made with another secret, or with several.
    """
    fingerprints = {record.provenance.secret for record in finished if record.status == "ok"}
    if fingerprints == {None}:
        reporter.warned(
            f"{store.folder}: its records come from an earlier version, which drew secrets from the public "
            "seeds; new records there do the same. For secrets that no attack can derive, choose another --out"
        )
        return ""
    secret = user_secret()
    if fingerprints - {fingerprint(secret)}:
        raise LeakboardError(
            f"{store.folder}: its records were made with the secret of fingerprint "
            f"{' and '.join(sorted(map(str, fingerprints)))}, but yours has the fingerprint {fingerprint(secret)}. "
            f"Set {VARIABLE} to the secret of these records, or choose another --out"
        )
    return secret


def _stored_secret() -> tuple[str, str]:
    """Path of the user's stored secret, and the secret."""
    import typer

    file = Path(typer.get_app_dir("leakboard")) / "secret"
    try:
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=file.parent) as drawn:
                drawn.write(secrets.token_hex(16))
                drawn.flush()
                with suppress(FileExistsError):  # another process was first
                    os.link(drawn.name, file)
        return str(file), file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise LeakboardError(
            f"{file}: the secret of your runs cannot be stored there ({error}). Set {VARIABLE} to "
            f"a secret of your own, of {MIN_LENGTH} random characters or more"
        ) from error
