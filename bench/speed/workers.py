"""Several workers against one: cells that mostly sleep, and real ones. `python -m leakboard.bench.speed workers`.

Cells that sleep show what the engine loses to starting, claiming and waiting, on a machine that has fewer
processors than workers. The real ones show that two workers with a thread each are no slower than one
with two.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.bench.backbones import Tokens
from leakboard.bench.contracts import Channel, TrainSettings
from leakboard.bench.exchange import Predictor, Session, Tuned
from leakboard.bench.methods import Defense, Source
from leakboard.bench.records import Store
from leakboard.bench.running import Engine, Reporter, make_plan
from leakboard.bench.speed.figures import Figure
from leakboard.bench.suites import Suite
from leakboard.defenses.sap import SAP

CELLS, SHORTEST, LONGEST = 48, 54.0, 66.0
"""Cells that sleep, and their seconds: a fixed schedule, about as long as real cells."""


class Sleeping(Defense):
    """Sleeps instead of training."""

    name: ClassVar[str] = "sleeping"
    source: ClassVar[Source] = Source("for measuring workers")
    emits: ClassVar[frozenset[Channel]] = frozenset()

    number: int = 0
    """Tells cells apart."""
    seconds: float = 1.0

    def fine_tune(self, session: Session) -> Tuned:
        time.sleep(self.seconds)
        shares = torch.bincount(session.labels, minlength=session.classes).float()

        def score(tokens: Tokens, rows: Tensor, split: str) -> Tensor:
            return shares.expand(len(rows), -1)

        return Predictor(score)


def workers(
    counts: Sequence[int] = (1, 2, 4, 8), cells: int = CELLS, seeds: int = 8
) -> list[Figure]:
    """Efficiency: the time that sleeping takes, shared out, over the time that the run takes.

    Args:
        cells: that sleep.
        seeds: of the real cells, which are two for each, and the untuned model.
    """
    seconds = np.random.default_rng(0).uniform(SHORTEST, LONGEST, cells).round(1).tolist()
    asleep = tuple(Sleeping(number=i, seconds=s) for i, s in enumerate(seconds))
    suite = Suite(
        name="sleeping", task="reviews", model="tiny-bert", limit=40, defenses=asleep, attacks=()
    )
    engines = [(f"{n} processes", n, Engine(n)) for n in counts]
    found = []
    for name, n, engine in [*engines, *_ray(counts[-1])]:
        efficiency = sum(seconds) / n / _took(suite, engine)
        told = f"workers: {cells} cells that sleep, {name}: efficiency"
        found.append(Figure(told, efficiency, 0.9, 0.8, more=True))
    real = Suite(
        name="real",
        task="reviews",
        model="minilm",
        limit=100,
        seeds=tuple(range(seeds)),
        train=(TrainSettings(epochs=1),),
        defenses=(SAP(eta=None), SAP(eta=75.0)),
        attacks=(NearestNeighbour(),),
    )
    alone, together = _took(real, Engine(1)), _took(real, Engine(2))
    told = f"  {3 * seeds} real cells, 2 workers over 1 on as many threads: throughput"
    return [*found, Figure(told, alone / together, 1.0, 0.9, more=True)]


def _ray(processors: int) -> list[tuple[str, int, Engine]]:
    """A Ray of this machine that takes it to have so many processors, where Ray is installed."""
    try:
        import ray
    except ImportError:
        return []
    # Its own: where a cluster died, its address stays behind.
    ray.init("local", num_cpus=processors, include_dashboard=False, log_to_driver=False)
    return [(f"{processors} tasks of a local Ray", processors, Engine(ray="auto"))]


def _took(suite: Suite, engine: Engine) -> float:
    """Seconds of a run into an empty folder, its start included."""
    plan = make_plan(suite)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        records = engine.run(plan, Store(Path(folder)), Reporter())
        took = time.perf_counter() - start
    assert all(record.status == "ok" for record in records), records[0].reason
    return took
