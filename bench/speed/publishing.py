"""How long the site takes: from nothing, and again after some records changed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from leakboard.bench.records import MANIFEST, Store
from leakboard.bench.speed.figures import Figure

PUBLISHED = Path(__file__).resolve().parents[2] / "results" / "published"
RECORDS = 600
"""To so many the seconds are converted; the published ones are about as many."""
TIMES = 10
"""So many times as many there are once each stands under other seeds, too."""
SEEDS = 1000
"""Between those of two copies."""


def publishing() -> list[Figure]:
    """`leakboard publish`: the first time, after one and ten records changed, and after none did.

    Then of ten times as many records, which are copies under other seeds.

    Nothing is measured where the published records are not there as files.
    """
    folders = sorted(path for path in PUBLISHED.glob("*") if any(path.glob("*.json")))
    if not folders:
        return []
    with tempfile.TemporaryDirectory() as place:
        copies = [shutil.copytree(folder, Path(place) / folder.name) for folder in folders]
        scale = RECORDS / sum(len(list(copy.glob("*.json"))) for copy in copies)
        site = Path(place) / "site"
        first = _published(copies, site) * scale
        again = []
        for changed in (0, 1, 10):
            _change(copies, changed)
            again.append(_published(copies, site) * scale)
        _grow(copies)
        many = _published(copies, Path(place) / "many") * scale
    none, one, ten = again
    return [
        Figure(f"publish: {RECORDS} records, the first time", first, 10, 20, "s"),
        Figure("  again, no record changed", none, 2, 4, "s"),
        Figure("  again, 1 record changed", one, 10, 15, "s"),
        Figure("  again, 10 records changed", ten, 10, 15, "s"),
        Figure(f"  {TIMES * RECORDS:,} records, the first time", many, 60, 120, "s"),
    ]


def _published(folders: Sequence[Path], site: Path) -> float:
    """Seconds of the command."""
    words = [
        "-c",
        "from leakboard.bench.cli import main; main()",
        "publish",
        *folders,
        "--to",
        site,
    ]
    start = time.perf_counter()
    subprocess.run([sys.executable, *map(str, words)], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def _grow(folders: Sequence[Path]) -> None:
    """Writes each record under so many other seeds."""
    for folder in folders:
        store = Store(folder)
        for record in store.read_all():
            for n in range(1, TIMES):
                cell = record.cell.model_copy(update={"seed": record.cell.seed + SEEDS * n})
                store.write(record.model_copy(update={"cell": cell, "key": cell.key}))


def _change(folders: Sequence[Path], number: int) -> None:
    """Writes another utility into so many records that the site shows, spread over the folders."""
    # In the order of their keys, which are hashes. Of a cell in two folders both would have to change.
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
