"""Measures the named comparisons, or all but the long ones, and prints one table."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence

import torch
from rich.console import Console

from leakboard.bench.contracts import did_you_mean
from leakboard.bench.speed.attacks import attacks, exposure, inversion, label_attacks
from leakboard.bench.speed.figures import Figure, table
from leakboard.bench.speed.gpu import gpu
from leakboard.bench.speed.precision import language, precision
from leakboard.bench.speed.publishing import publishing
from leakboard.bench.speed.sending import recording, snap
from leakboard.bench.speed.starting import start
from leakboard.bench.speed.steps import dpsgd, p3eft, rapt, training
from leakboard.bench.speed.tuning import tuning
from leakboard.bench.speed.workers import workers

KNOWN: dict[str, Callable[[], Sequence[Figure]]] = {
    "start": start,
    "snap": snap,
    "training": training,
    "p3eft": p3eft,
    "dpsgd": dpsgd,
    "rapt": rapt,
    "recording": recording,
    "attacks": attacks,
    "label-attacks": label_attacks,
    "inversion": inversion,
    "exposure": exposure,
}
"""Together they take less than five minutes."""
LONG: dict[str, Callable[[], Sequence[Figure]]] = {
    "precision": precision,
    "language": language,
    "publish": publishing,
    "workers": workers,
    "tune": tuning,
    "gpu": gpu,
}
"""They take many minutes, or need a GPU, and run only where they are named."""


def main(names: Sequence[str]) -> int:
    """Measures and prints.

    Returns:
        2 where a name is not known. No number decides: machines are shared, and this is no test.
    """
    every, console = KNOWN | LONG, Console()
    for name in names:
        if name not in every:
            console.print(f"unknown '{name}'. {did_you_mean(name, every)}", highlight=False)
            return 2
    began, found = time.perf_counter(), list[Figure]()
    with console.status("") as status:
        for name in names or KNOWN:
            status.update(f"measuring {name}")
            found += every[name]()
    took = time.perf_counter() - began
    title = f"{torch.get_num_threads()} threads, load {os.getloadavg()[0]:.1f}, {took:.0f} s"
    console.print(table(title, found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
