"""How long one waits before anything happens."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

from leakboard.bench.speed import interleaved
from leakboard.bench.speed.figures import Figure

WAYS = {
    "import leakboard": ["-c", "import leakboard"],
    "leakboard --help": ["-c", "from leakboard.bench.cli import main; main()", "--help"],
    "import torch": ["-c", "import torch"],
}


def start() -> list[Figure]:
    """A process that imports the API, and one that shows the help, also against one that loads torch."""
    run = partial(subprocess.run, check=True, stdout=subprocess.DEVNULL)
    ways = [partial(run, [sys.executable, *words]) for words in WAYS.values()]
    api, help_, torch = interleaved(*ways, repeats=5)
    return [
        Figure("start: import leakboard", api, 0.3, 0.6, "s"),
        Figure("  leakboard --help", help_, 0.5, 1.0, "s"),
        Figure("  leakboard --help over import torch", help_ / torch, 0.3, 0.6),
    ]
