"""Cells stacked over one model against the same cells one after the other: `python -m leakboard.bench.speed stacks`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from leakboard.bench.backbones import device_of
from leakboard.bench.contracts import TrainSettings
from leakboard.bench.methods import Defense
from leakboard.bench.records import Store
from leakboard.bench.running import Plan, Runner, make_plan
from leakboard.bench.speed import interleaved
from leakboard.bench.speed.figures import Figure
from leakboard.bench.suites import Suite
from leakboard.defenses.none import NoDefense
from leakboard.defenses.p3eft import P3EFT
from leakboard.defenses.sap import SAP


def stacks(cells: int = 4, model: str = "minilm", limit: int = 256) -> list[Figure]:
    """Throughput of fine-tuning and evaluation, on a GPU where there is one; nobody attacks.

    Args:
        cells: of a stack.
    """
    device = device_of("auto")
    etas = [SAP(eta=25.0 * (i + 1)) for i in range(cells)]
    weights = [P3EFT(weight=i / 10, backprop="combined") for i in range(cells)]
    kinds: dict[str, tuple[Sequence[Defense], int]] = {
        "none, a seed each": ([NoDefense()], cells),
        "sap, an eta each": (etas, 1),
        "p3eft, a weight each": (weights, 1),
    }
    found = []
    for name, (defenses, seeds) in kinds.items():
        plan = _plan(model, limit, defenses, seeds, device)
        for way in (run := [_run(plan, width) for width in (1, cells)]):
            way()
        alone, together = interleaved(*run)
        told = f"stacks: {cells} cells of {model} on {device}, {name}: throughput over one by one"
        found.append(Figure(told, alone / together, more=True))
    return found


def _plan(model: str, limit: int, defenses: Sequence[Defense], seeds: int, device: str) -> Plan:
    data = os.environ.get("LEAKBOARD_DATA")
    suite = Suite(
        name="stacks",
        task="sst2" if data else "reviews",
        model=model,
        limit=limit,
        seeds=tuple(range(seeds)),
        train=(TrainSettings(epochs=1),),
        defenses=tuple(defenses),
        attacks=(),
    )
    return make_plan(suite, Path(data) if data else None, device, twins=False)


def _run(plan: Plan, width: int) -> Callable[[], None]:
    """A run into an empty folder, with stacks of a width."""

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            for record in Runner(plan, Store(Path(folder)), stack=width).run():
                assert (record.status, record.provenance.stacked) == ("ok", width), record.reason

    return run
