"""Builders for tests that run real but small cells: a tiny model on a few generated reviews."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch

from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.attacks.logit_gradient import LogitGradient
from leakboard.attacks.prior import Prior
from leakboard.bench.backbones.loading import load_backbone
from leakboard.bench.contracts.cell import Recording, Seeds, TrainSettings
from leakboard.bench.contracts.record import Record
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.exchange.session import Session
from leakboard.bench.exchange.tuned_model import Tuned
from leakboard.bench.exchange.wire import Wire
from leakboard.bench.methods.attack import Attack
from leakboard.bench.methods.defense import Defense
from leakboard.bench.records.store import Store
from leakboard.bench.running import plan as planning
from leakboard.bench.running.cell_context import CellContext, Inputs, context_of
from leakboard.bench.running.plan import Plan, make_plan
from leakboard.bench.running.runner import Runner
from leakboard.bench.suites.suite import Suite

load_tiny = cache(load_backbone)
ATTACKS = (NearestNeighbour(), LogitGradient(), Prior())
TRAIN = {"epochs": 2, "batch_size": 16}


def make(
    *defenses: Defense,
    attacks: Sequence[Attack] = ATTACKS,
    limit: int = 48,
    train: dict[str, Any] | None = None,
    record: dict[str, Any] | None = None,
    task: str = "reviews",
    model: str = "tiny-bert",
    twins: bool = False,
    **fields: Any,
) -> Plan:
    """The plan of a suite; the tiny model is loaded once."""
    suite = Suite(
        name="test",
        task=task,
        model=model,
        limit=limit,
        train=TrainSettings(**TRAIN | (train or {})),
        record=Recording(**record or {}),
        defenses=defenses,
        attacks=tuple(attacks),
        **fields,
    )
    original = planning.load_backbone
    planning.load_backbone = load_tiny
    try:
        return make_plan(suite, twins=twins)
    finally:
        planning.load_backbone = original


def run(folder: Path, *defenses: Defense, **fields: Any) -> list[Record]:
    """The records of a plan, run into a folder."""
    return Runner(make(*defenses, **fields), Store(folder)).run()


def first_scene(*defenses: Defense, **fields: Any) -> CellContext:
    """What the first cell of a plan is run on."""
    plan = make(*defenses, **fields)
    return context_of(plan, plan.cells[0])


def session_of(
    defense: Defense, seeds: Seeds | None = None, **fields: Any
) -> tuple[Session, Inputs]:
    """What a defense would be given in the one cell of a plan, and the truth beside it."""
    scene = first_scene(defense, **fields)
    wire = Wire(defense.sends, scene.inputs.recorded)
    return scene.session(wire, seeds), scene.inputs


def fine_tuned(defense: Defense, **fields: Any) -> tuple[Session, Inputs, Tuned]:
    """A session in which a defense was run, the truth beside it, and the predictor."""
    session, inputs = session_of(defense, **fields)
    return session, inputs, defense.fine_tune(session)


def ids_of(session: Session, round: int = 0, split: str = "train") -> torch.Tensor:
    """[T] the token ids whose initial embeddings were sent."""
    sent = session.wire.transcript().collect(Channel.REPRESENTATIONS, split, round)
    return torch.from_numpy(session.neighbours.nearest(sent.values))


def leak_of(record: Record, attack: str, view: str = "train", goal: str = "inversion") -> Any:
    """The one leak of an attack on a goal in a view."""
    (leak,) = (
        leak
        for leak in record.leaks
        if (leak.attack.name, leak.view, leak.goal) == (attack, view, goal)
    )
    return leak


DEEP = {"cut": 1, "limit": 24, "train": {"epochs": 2}}
NOISY = 180.0
"""An η at which the tiny model loses part of its tokens and keeps part."""
