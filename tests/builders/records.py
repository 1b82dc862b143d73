"""Synthetic records for tests that need results but no training."""

from __future__ import annotations

import hashlib
from typing import Any

from leakboard.bench.contracts.cell import Cell, MethodSpec, Recording, TrainSettings
from leakboard.bench.contracts.record import BottomCost, Cost, Estimate, Leak, Provenance, Record
from leakboard.bench.contracts.threat import Channel, Goal


def estimate(value: float, chance: float = 0.05, half: float = 0.01, n: int = 400) -> Estimate:
    """An estimate with a symmetric interval."""
    return Estimate(value=value, low=value - half, high=value + half, n=n, chance=chance)


def leak(
    success: float | None = 0.5,
    attack: str = "eia-nn",
    goal: Goal = Goal.INVERSION,
    chance: float = 0.05,
    params: dict[str, Any] | None = None,
    version: int = 1,
    **fields: Any,
) -> Leak:
    """A leak; with `success=None` one that found nothing (give `status` and `reason`)."""
    return Leak(
        attack=MethodSpec(name=attack, params=params or {}, version=version),
        goal=goal,
        success=None if success is None else estimate(success, chance),
        units=0 if success is None else 4000,
        metric="" if success is None else "token accuracy",
        **{"status": "ok", "channel": Channel.REPRESENTATIONS, "view": "train", **fields},
    )


def record(
    defense: str = "sap",
    params: dict[str, Any] | None = None,
    seed: int = 0,
    utility: float | None = 0.9,
    leaks: list[Leak] | None = None,
    task: str = "reviews",
    model: str = "minilm",
    cut: int = 0,
    limit: int | None = 2000,
    epochs: int = 2,
    precision: str = "float32",
    **fields: Any,
) -> Record:
    """A record of one cell; its key is that of the cell, as the store demands."""
    cell = Cell(
        task=task,
        data_hash=hashlib.sha256(task.encode()).hexdigest(),
        limit=limit,
        evaluate="dev",
        model=model,
        model_hash=hashlib.sha256(model.encode()).hexdigest(),
        cut=cut,
        defense=MethodSpec(name=defense, params=params or {}),
        train=TrainSettings.model_validate({"epochs": epochs, "precision": precision}),
        record=Recording(),
        seed=seed,
    )
    done = fields.get("status", "ok") == "ok"
    return Record(
        key=cell.key,
        cell=cell,
        utility=None if utility is None else estimate(utility, chance=0.5),
        leaks=[leak()] if leaks is None else leaks,
        cost=COST if done else None,
        provenance=PROVENANCE,
        **{"status": "ok", **fields},
    )


COST = Cost(
    bytes_up=1_000_000,
    bytes_down=2_000,
    trained_parameters=74_000,
    train_seconds=12.5,
    attack_seconds=1.0 / 3.0,
    total_seconds=20.0,
    peak_megabytes=512.0,
    epoch_bytes_up=500_000.0,
    epoch_bytes_down=1_000.5,
    bottom=BottomCost(parameters=300, tokens=7, flops=9_000, megabytes=1.5),
)
PROVENANCE = Provenance(
    created="2024-05-01T12:00:00+00:00",
    leakboard="0.1.0",
    commit="0123abc",
    dirty=False,
    python="3.12.0",
    packages={"numpy": "2.0.0"},
    device="cpu",
    threads=2,
    platform="linux",
)


def sweep(task: str = "sst2", seeds: int = 3) -> list[Record]:
    """A defense at three settings, and no defense."""
    made = []
    for seed in range(seeds):
        for eta, success, utility in ((50.0, 0.2, 0.7), (75.0, 0.5, 0.8), (100.0, 0.9, 0.9)):
            shift = 0.01 * seed
            found = [leak(success + shift), leak(success / 2, attack="eia-learned")]
            made.append(record("sap", {"eta": eta}, seed, utility - shift, found, task))
        made.append(record("none", {}, seed, 0.92, [leak(0.99)], task, undefended=True))
    return made


def skipped(**fields: object) -> Leak:
    return leak(None, status="skipped", reason="needs a cut above 0", **fields)
