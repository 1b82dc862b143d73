"""Builders for tests of released models: small cells of a tiny language model."""

from __future__ import annotations

import numpy as np
import pytest
from cells import load_tiny

from leakboard.attacks.membership import Membership
from leakboard.bench.contracts.cell import Plant, Recording, TrainSettings
from leakboard.bench.methods.attack import Attack
from leakboard.bench.methods.defense import Defense
from leakboard.bench.running import plan as planning
from leakboard.bench.running.cell_context import context_of
from leakboard.bench.running.cells import run_cell
from leakboard.bench.running.plan import Plan, make_plan
from leakboard.bench.suites.suite import Suite
from leakboard.bench.tasks.task import Span, Split, Task

FORM = "My ID is {digits}."
TEXTS = Task(
    "texts",
    (),
    {
        "train": Split(
            tuple(f"call {name} at {n}" for n, name in enumerate(["parcel", "refund"] * 20)),
            np.zeros(40, np.int64),
            secrets=tuple((Span(5, 11, "name"),) for _ in range(40)),
        ),
        "dev": Split(("call parcel at 3", "call refund at 40"), np.zeros(2, np.int64)),
    },
)


def plan_of(
    *defenses: Defense,
    task: Task = TEXTS,
    plant: Plant | None = None,
    attacks=(),
    limit: int | None = 40,
    **train,
) -> Plan:
    suite = Suite(
        name="test",
        task="reviews",
        model="tiny-gpt2" if not task.labels else "tiny-bert",
        limit=limit,
        train=TrainSettings(**{"epochs": 1, "batch_size": 8} | train),
        record=Recording(examples=8),
        plant=plant,
        defenses=defenses,
        attacks=attacks,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "load_backbone", lambda name, device: load_tiny(name))
        patch.setattr(planning, "load_task", lambda spec, data, base: task)
        return make_plan(suite, twins=False)


def run(plan: Plan, number: int = 0):
    return run_cell(context_of(plan, plan.cells[number]))


def audited(defense: Defense, task: Task, *attacks: Attack, **settings):
    """The record of a cell in which a coin was thrown for every example, and its first leak."""
    n = len(task.splits["train"])
    plan = plan_of(
        defense,
        task=task,
        plant=Plant(audit=n),
        attacks=attacks or (Membership(),),
        limit=None,
        **settings,
    )
    record = run(plan)
    assert (record.status, record.reason) == ("ok", "")
    return record, record.leaks[0]
