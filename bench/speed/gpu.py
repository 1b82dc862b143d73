"""What a GPU takes, against two cores: one table."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from leakboard.bench.backbones import load_backbone
from leakboard.bench.defending import privatise_tokens
from leakboard.bench.exchange import Wire
from leakboard.bench.methods import Defense
from leakboard.bench.speed import interleaved
from leakboard.bench.speed.figures import Figure
from leakboard.bench.speed.precision import session_of, threads
from leakboard.bench.tasks import Task, load_task
from leakboard.defenses.dpsgd import DPSGD
from leakboard.defenses.none import NoDefense
from leakboard.defenses.p3eft import P3EFT
from leakboard.defenses.sap import SAP

CORES = 2
ETA = 75.0
TRAINED: dict[str, tuple[Defense, str]] = {
    "one epoch, none, float32": (NoDefense(), "float32"),
    "one epoch, none, bf16": (NoDefense(), "bf16"),
    "one epoch, sap, float32": (SAP(), "float32"),
    "one epoch, p3eft by calls": (P3EFT(), "float32"),
    "one epoch, dpsgd": (DPSGD(epsilon=None, sigma=1.0), "float32"),
}


def gpu() -> list[Figure]:
    """Prints a table of its own, or that there is no GPU here."""
    if not torch.cuda.is_available():
        print("gpu: no CUDA device here, so there is nothing to compare with two cores")
        return []
    table = Table(title=f"{torch.cuda.get_device_name()} against {CORES} cores, minilm")
    table.add_column("work")
    for name in (f"{CORES} cores, s", "GPU, s", f"GPU : {CORES} cores"):
        table.add_column(name, justify="right")
    for name, (slow, fast) in compared("cuda").items():
        table.add_row(name, f"{slow:.3f}", f"{fast:.3f}", f"1 : {slow / fast:.1f}")
    Console().print(table)
    return []


def compared(device: str, examples: int = 512, tokens: int = 65_536) -> dict[str, list[float]]:
    """By what was done, the median seconds on two cores and on a device, taken in turn.

    Args:
        tokens: that are privatised and snapped to their nearest words.
    """
    data = os.environ.get("LEAKBOARD_DATA")
    task = load_task("sst2" if data else "reviews", Path(data) if data else None)
    works = {f"snap of {tokens:,} tokens": partial(snapping, tokens)} | {
        name: partial(training, defense, task, precision, examples)
        for name, (defense, precision) in TRAINED.items()
    }
    found = {}
    with threads(CORES):
        for name, work in works.items():
            ways = [work("cpu"), work(device)]
            for way in ways:  # kernels are chosen, and the memory is laid out, at the first time
                way()
            found[name] = interleaved(*ways)
    return found


def snapping(tokens: int, device: str) -> Callable[[], object]:
    """Noise on words of MiniLM, and their nearest words."""
    backbone, rng = load_backbone("minilm", device), np.random.default_rng(0)
    ids = torch.from_numpy(rng.integers(len(backbone.embeddings), size=tokens))
    return lambda: privatise_tokens(ids, backbone.embeddings, backbone.neighbours, ETA, rng)


def training(
    defense: Defense, task: Task, precision: str, examples: int, device: str
) -> Callable[[], object]:
    """One epoch of fine-tuning, from the copy of the public model on."""
    session = session_of(defense, task, precision, examples, device)

    def epoch() -> None:
        defense.fine_tune(replace(session, wire=Wire(defense.sends, {}), loss=[]))
        if device.startswith("cuda"):
            torch.cuda.synchronize(device)

    return epoch
