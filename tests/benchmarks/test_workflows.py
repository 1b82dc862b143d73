"""Whole commands: the site, runs with several workers, and tuning. All are long."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest
from benchmarking import Figure
from paths import ROOT
from sleeping_defense import Sleeping

from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.bench.contracts import Record, TrainSettings
from leakboard.bench.records import MANIFEST, Store
from leakboard.bench.running import Engine, Reporter, make_plan
from leakboard.bench.suites import Suite, load_suite
from leakboard.bench.tuning import tune
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP

pytestmark = pytest.mark.long
RECORDS = 600
"""Seconds of the site are converted to so many; about as many are published."""
COPIES = 10
CELLS = 48
SEEDS = 8


@pytest.fixture
def folders(tmp_path) -> list[Path]:
    """Copies of the folders of published records."""
    published = (ROOT / "results" / "published").glob("*")
    folders = sorted(path for path in published if any(path.glob("*.json")))
    if not folders:
        pytest.skip("the published records are not files here")
    return [Path(shutil.copytree(folder, tmp_path / folder.name)) for folder in folders]


def publish(folders: Sequence[Path], site: Path) -> None:
    words = ["-c", "from leakboard.bench.cli import main; main()", "publish", *folders]
    subprocess.run(
        [sys.executable, *map(str, words), "--to", str(site)],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def change(folders: Sequence[Path], number: int) -> None:
    """Write another utility into a number of records of the site, spread over the folders.

    Records of a cell that two folders hold stay as they are.
    """
    paths = [path for folder in folders for path in folder.glob("*.json") if path.name != MANIFEST]
    times = Counter(path.stem for path in paths)
    for path in sorted(paths, key=lambda path: path.stem):
        if number == 0:
            return
        store = Store(path.parent)
        record = store.require(path.stem)
        if times[path.stem] == 1 and record.utility and record.cell.shadow is None:
            utility = record.utility.model_copy(update={"value": 0.999 * record.utility.value})
            store.write(record.model_copy(update={"utility": utility}))
            number -= 1


def multiply(folders: Sequence[Path]) -> None:
    """Write each record under other seeds, until there are `COPIES` of each."""
    for folder in folders:
        store = Store(folder)
        for record in store.read_all():
            for n in range(1, COPIES):
                cell = record.cell.model_copy(update={"seed": record.cell.seed + 1000 * n})
                store.write(record.model_copy(update={"cell": cell, "key": cell.key}))


@pytest.mark.parametrize(
    ("state", "goal", "limit"),
    [
        ("the first time", 10, 20),
        ("0 records changed", 2, 4),
        ("1 record changed", 10, 15),
        ("10 records changed", 10, 15),
        (f"{COPIES} times as many records, the first time", 60, 120),
    ],
)
def test_publish(comparison, folders, tmp_path, state, goal, limit):
    """`leakboard publish` from nothing, and again after some records changed."""
    scale = RECORDS / sum(len(list(folder.glob("*.json"))) for folder in folders)
    site = tmp_path / "site"
    if state.endswith("changed"):
        publish(folders, site)
        change(folders, int(state.split()[0]))
    elif state.startswith(str(COPIES)):
        multiply(folders)
    comparison.measure(lambda: publish(folders, site), rounds=1)
    name = f"publish: {RECORDS} records, {state}"
    comparison.report(Figure(name, scale * comparison.median, goal, limit, "s"))


def run(
    suite: Suite, engine: Engine, folder: Path, data: Path | None = None, twins: bool = True
) -> list[Record]:
    """Run a suite into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    records = engine.run(make_plan(suite, data, twins=twins), Store(folder), Reporter(), data)
    assert all(record.status == "ok" for record in records), records[0].reason
    return records


@pytest.mark.parametrize("processes", [1, 2, 4, 8, "ray"])
def test_workers_on_sleeping_cells(comparison, tmp_path, processes):
    """Efficiency: the time that sleeping takes, divided by the workers, over the time of the run.

    It shows the cost of starting, claiming and waiting on a machine with fewer processors than workers.
    """
    number = 8 if processes == "ray" else processes
    engine = Engine(number)
    if processes == "ray":
        ray = pytest.importorskip("ray", reason="needs the extra 'ray'")
        # A new one: where a cluster died, its address stays behind.
        ray.init("local", num_cpus=number, include_dashboard=False, log_to_driver=False)
        engine = Engine(ray="auto")
    # About as long as real cells.
    seconds = np.random.default_rng(0).uniform(54, 66, CELLS).round(1).tolist()
    defenses = tuple(Sleeping(number=i, seconds=each) for i, each in enumerate(seconds))
    suite = Suite(
        name="sleeping",
        task="reviews",
        model="tiny-bert",
        limit=40,
        defenses=defenses,
        attacks=(),
    )
    comparison.measure(lambda: run(suite, engine, tmp_path / "records"), rounds=1)
    efficiency = sum(seconds) / number / comparison.median
    workers = f"{number} tasks of a local Ray" if processes == "ray" else f"{number} processes"
    name = f"workers: {CELLS} cells that sleep, {workers}: efficiency"
    comparison.report(Figure(name, efficiency, 0.9, 0.8, more=True))


def test_two_workers_on_real_cells(comparison, tmp_path):
    """Two workers with a thread each are no slower than one with two."""
    suite = Suite(
        name="real",
        task="reviews",
        model="minilm",
        limit=100,
        seeds=tuple(range(SEEDS)),
        train=(TrainSettings(epochs=1),),
        defenses=(SAP(eta=None), SAP(eta=75.0)),
        attacks=(NearestNeighbour(),),
    )
    folder = tmp_path / "records"
    comparison.measure(
        lambda: run(suite, Engine(2), folder), lambda: run(suite, Engine(1), folder), rounds=1
    )
    name = f"workers: {3 * SEEDS} real cells, 2 workers over 1 on as many threads: throughput"
    comparison.report(Figure(name, 1 / comparison.ratio(), 1.0, 0.9, more=True))


def test_a_cell_of_matrix(comparison, data, tmp_path):
    """SAP at η = 75 on 1,000 examples of SST-2, in bf16 as in `matrix` and in float32.

    Its attacks are those of `matrix` except two that fine-tune a network for minutes.
    """
    if data is None:
        pytest.skip("needs SST-2: set LEAKBOARD_DATA to a folder of datasets")
    matrix = load_suite("matrix").override(seeds=0, limit=1000)
    row = next(row for row in matrix.defenses if row.defense == SAP(eta=75.0))
    quick = tuple(each for each in matrix.attacks if not getattr(each, "epochs", 0))
    suite = matrix.model_copy(update={"defenses": (row,), "attacks": quick})

    def cell(precision: str) -> list[Record]:
        precise = suite.override(precision=precision)
        return run(precise, Engine(), tmp_path / "records", data, twins=False)

    cell("bf16")  # what cells of a process share
    (record,) = comparison.measure(lambda: cell("bf16"), lambda: cell("float32"), rounds=1)
    attacks = record.cost.attack_seconds / record.cost.total_seconds
    comparison.report(
        Figure("matrix: a cell of SAP in bf16 over float32", comparison.ratio(), 0.5, 0.8),
        Figure("  share of its attacks", attacks),
    )


def training_seconds(records: Iterable[Record]) -> float:
    """Sum over the records, without attacks."""
    return sum(record.cost.train_seconds for record in records if record.cost is not None)


def test_tune(comparison, tmp_path):
    """Seconds of training in all trials of a small suite over those in its cells.

    With fewer examples the start of a trial would count for more than its passes.
    """
    suite = Suite(
        name="tuned",
        task="reviews",
        model="tiny-bert",
        limit=320,
        seeds=(0, 1),
        train=(TrainSettings(epochs=2),),
        defenses=(NoDefense(), SAP(eta=75.0)),
        attacks=(),
    )
    plan = make_plan(suite, twins=False)
    cells = Engine().run(plan, Store(tmp_path / "suite"), Reporter())
    trials = comparison.measure(lambda: tune(suite, tmp_path / "trials").records, rounds=1)
    name = f"tune: training in {len(trials)} trials over {len(cells)} cells of the suite"
    ratio = training_seconds(trials) / training_seconds(cells)
    comparison.report(Figure(name, ratio, 4.0, 5.0))
