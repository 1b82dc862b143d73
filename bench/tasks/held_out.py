"""A part of the training split that is set aside, so that settings are chosen on nothing that is reported."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from leakboard.bench.contracts import LeakboardError
from leakboard.bench.tasks.sources import public_rows
from leakboard.bench.tasks.task import Task

HELD_OUT = "held-out"
"""The name of that part, where a suite evaluates on it."""
SHARE = 0.2
"""Of the training examples; drawn are whole sources, so that no text there was cut from one that is trained on."""


def held_out(task: Task) -> Task:
    """The task with a fifth of its training split as the split `held-out`, and the rest to train on.

    Raises:
        LeakboardError: its training examples are all of one source, or one part lacks a class.
    """
    train = task.splits["train"]
    apart = public_rows(train, [], SHARE)
    kept, chosen = train.take(np.flatnonzero(~apart)), train.take(np.flatnonzero(apart))
    if not len(kept) or not len(chosen):
        raise LeakboardError(
            f"task '{task.name}': its {len(train)} training examples are of one source, and none "
            "can be held out to choose settings on"
        )
    if missing := {*train.labels.tolist()} - ({*kept.labels.tolist()} & {*chosen.labels.tolist()}):
        names = ", ".join(task.labels[label] for label in sorted(missing))
        raise LeakboardError(
            f"task '{task.name}': {len(chosen)} of {len(train)} training examples are held out to choose "
            f"settings on, and {names} is in one of the two parts only; take more examples"
        )
    return replace(task, splits={**task.splits, "train": kept, HELD_OUT: chosen})
