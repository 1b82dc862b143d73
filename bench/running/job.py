"""A run as something that can be handed to another process, which lays out the same plan by itself."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from leakboard.bench import __version__
from leakboard.bench.contracts import LeakboardError
from leakboard.bench.records import Store
from leakboard.bench.running.plan import Plan, make_plan
from leakboard.bench.suites import Suite

FROM_FILE = "leakboard_file_"
"""Modules that were read from a single file are called so; no other process can import them by name."""


@dataclass(frozen=True)
class Job:
    """What a worker is told.

    Attributes:
        keys: of all cells, in the order of the plan; a worker that comes to others is refused.
        made_of: hashes and versions by what they are of, to say what differs there.
        since: when the run began, by the clock of the store.
        threads: of the worker.
        workers: how many are at work on this machine at once.
        twins, secret: of the plan.
    """

    suite: Suite
    data: Path | None
    device: str
    folder: Path
    transcripts: Path | None
    shard: tuple[int, int] | None
    keys: tuple[str, ...]
    made_of: dict[str, str]
    since: float
    threads: int
    workers: int
    twins: bool
    secret: str = field(repr=False)

    @property
    def store(self) -> Store:
        return Store(self.folder)

    def packed(self) -> bytes:
        """For another process; methods that it could not import travel along."""
        import cloudpickle

        defenses = (row.defense for row in self.suite.defenses)
        for method in (*defenses, *self.suite.attacks):
            module = sys.modules[type(method).__module__]
            if module.__name__.startswith(FROM_FILE):
                cloudpickle.register_pickle_by_value(module)
        packed: bytes = cloudpickle.dumps(self)
        return packed

    @cached_property
    def plan(self) -> Plan:
        """The plan, laid out in this process.

        Raises:
            LeakboardError: its cells are not those of the job: other data, weights or versions.
        """
        plan = make_plan(self.suite, self.data, self.device, self.twins)
        if self.shard:
            plan = plan.part(self.shard[0] - 1, self.shard[1])
        if keys_of(plan) != self.keys:
            here = made_of(plan)
            apart = [what for what, told in self.made_of.items() if here.get(what) != told]
            raise LeakboardError(
                "a worker comes to other cells than this run; what differs there: "
                f"{', '.join(apart) or 'the methods'}. Install the same version of leakboard and of "
                "plug-ins there, and see that --data and --model hold the same files"
            )
        return replace(plan, secret=self.secret)


def keys_of(plan: Plan) -> tuple[str, ...]:
    return tuple(planned.cell.key for planned in plan.cells)


def made_of(plan: Plan) -> dict[str, str]:
    """Hashes of data and weights, and the version, by what they are of."""
    data = {f"the data of {task.name}": key for key, task in plan.tasks.items()}
    weights = {f"the weights of {model.name}": key for key, model in plan.backbones.items()}
    return data | weights | {"the version of leakboard": __version__}
