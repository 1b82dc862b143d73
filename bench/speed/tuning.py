"""What choosing settings costs, against the suite that it tunes: `python -m leakboard.bench.speed tune`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from leakboard.bench.contracts import Record, TrainSettings
from leakboard.bench.records import Store
from leakboard.bench.running import Engine, Reporter, make_plan
from leakboard.bench.speed.figures import Figure
from leakboard.bench.suites import Suite
from leakboard.bench.tuning import tune
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP


def tuning(model: str = "tiny-bert", limit: int = 320, seeds: int = 2) -> list[Figure]:
    """Seconds of training in all trials of a small suite over those in its own cells.

    Of both what training took counts, as the records tell it; attacks, which trials do without, do not. With
    few examples what starting a trial takes would count for more than its passes.
    """
    suite = Suite(
        name="tuned",
        task="reviews",
        model=model,
        limit=limit,
        seeds=tuple(range(seeds)),
        train=(TrainSettings(epochs=2),),
        defenses=(NoDefense(), SAP(eta=75.0)),
        attacks=(),
    )
    with tempfile.TemporaryDirectory() as folder:
        found = tune(suite, Path(folder) / "trials")
        own = Engine().run(make_plan(suite, twins=False), Store(Path(folder) / "suite"), Reporter())
    told = f"tune: training in {len(found.records)} trials over {len(own)} cells of the suite"
    return [Figure(told, _seconds(found.records) / _seconds(own), 4.0, 5.0)]


def _seconds(records: Iterable[Record]) -> float:
    every = [record.cost for record in records]
    return sum(cost.train_seconds for cost in every if cost is not None)
