"""Runs the named comparisons, or all of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import torch

from bench.speed.attacks import attacks, inversion, label_attacks
from bench.speed.gpu import gpu
from bench.speed.precision import precision
from bench.speed.sending import recording, snap
from bench.speed.starting import start
from bench.speed.steps import dpsgd, p3eft, training
from bench.speed.workers import workers

KNOWN: dict[str, Callable[[], None]] = {
    "start": start,
    "snap": snap,
    "training": training,
    "attacks": attacks,
    "inversion": inversion,
    "label-attacks": label_attacks,
    "p3eft": p3eft,
    "dpsgd": dpsgd,
    "precision": precision,
    "recording": recording,
}

LONG: dict[str, Callable[[], None]] = {"workers": workers, "gpu": gpu}
"""They take many minutes, or need a GPU, and run only where they are named."""

if __name__ == "__main__":
    print(f"{torch.get_num_threads()} threads, load {os.getloadavg()[0]:.1f}")
    for name in sys.argv[1:] or KNOWN:
        (KNOWN | LONG)[name]()
