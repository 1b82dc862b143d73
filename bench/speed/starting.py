"""How long one waits before anything happens."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

from bench.speed import interleaved

WAYS = {
    "python itself": ["-c", "pass"],
    "import leakboard": ["-c", "import leakboard"],
    "leakboard --help": ["-c", "from bench.cli import main; main()", "--help"],
    "import torch": ["-c", "import torch"],
}


def start() -> None:
    """A process that imports the API, and one that shows the help, against Python alone and torch."""
    run = partial(subprocess.run, check=True, stdout=subprocess.DEVNULL)
    ways = [partial(run, [sys.executable, *words]) for words in WAYS.values()]
    for name, taken in zip(WAYS, interleaved(*ways, repeats=7), strict=True):
        print(f"start: {name}: {taken:.2f} s")
