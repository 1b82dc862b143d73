"""Cells on a GPU: whole ones, one that fills its memory, and two workers at once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import cloudpickle
import pytest
import torch
from cells import make

from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.attacks.logit_gradient import LogitGradient
from leakboard.attacks.prior import Prior
from leakboard.bench.backbones.loading import load_backbone
from leakboard.bench.exchange.tuned_model import Tuned
from leakboard.bench.methods.defense import Defense
from leakboard.bench.methods.method import Source
from leakboard.bench.records.store import Store
from leakboard.bench.running.engine import Engine
from leakboard.bench.running.plan import Plan
from leakboard.bench.running.reporting import Reporter
from leakboard.bench.running.runner import Runner
from leakboard.defenses.dpsgd import DPSGD
from leakboard.defenses.frozen import Frozen
from leakboard.defenses.none import NoDefense
from leakboard.defenses.p3eft import P3EFT
from leakboard.defenses.sap import SAP

# No other process can import this file by its name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

GPU = pytest.param("cuda", marks=pytest.mark.gpu)
on_each_device = pytest.mark.parametrize("device", ["cpu", GPU])
ALLOWED = 2**30
"""Bytes of a GPU that may be filled; others may be on it."""
PIECE = 2**26


def moved(plan: Plan, device: str) -> Plan:
    """The same plan on a device."""
    backbones = {key: load_backbone(one.name, device) for key, one in plan.backbones.items()}
    assert backbones.keys() == {one.hash for one in backbones.values()}
    return replace(plan, backbones=backbones)


class Hungry(Defense):
    """Takes memory until there is none left."""

    name: ClassVar[str] = "hungry"
    source: ClassVar[Source] = Source("a test")
    emits: ClassVar[frozenset[Any]] = frozenset()

    def fine_tune(self, session: Any) -> Tuned:
        if session.device == "cpu":
            torch.empty(2**52)
        held = []
        while True:
            held.append(torch.empty(PIECE, dtype=torch.uint8, device=session.device))


@contextmanager
def at_most(size: int, device: str) -> Iterator[None]:
    """So many bytes for this process."""
    if device == "cpu":
        yield
        return
    total = torch.cuda.get_device_properties(device).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, size / total))
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def held(device: str) -> int:
    return 0 if device == "cpu" else torch.cuda.memory_reserved(device)


@on_each_device
def test_a_cell_that_fills_the_memory_is_a_record_and_the_next_one_runs(tmp_path, device):
    plan = moved(make(Hungry(), NoDefense(), attacks=(Prior(),)), device)
    with at_most(ALLOWED, device):
        full, after = Runner(plan, Store(tmp_path)).run()
        assert held(device) < ALLOWED / 4, "what the full cell held is still taken from others"
    assert full.status == "out-of-memory"
    assert "memory" in full.reason
    assert (after.status, after.reason) == ("ok", "")


@on_each_device
def test_two_workers_share_a_device_and_give_the_records_of_one(tmp_path, device):
    attacks = (NearestNeighbour(), LogitGradient(), Prior())
    # With the twins that workers add to their plans, too.
    plan = make(Frozen(), SAP(), NoDefense(), attacks=attacks, limit=32, twins=True)
    plan = moved(plan, device)
    alone = Engine().run(plan, Store(tmp_path / "one"), Reporter())
    together = Engine(workers=2).run(plan, Store(tmp_path / "two"), Reporter())
    assert [r.key for r in together] == [r.key for r in alone]
    assert {r.status for r in together} == {"ok"}
    assert {r.provenance.workers for r in together} == {2}
    assert len({r.provenance.device for r in (*alone, *together)}) == 1
    assert (together[0].provenance.device == "cpu") == (device == "cpu")
    for one, two in zip(alone, together, strict=True):
        # Dropout is drawn alike; sums on a GPU may be added in another order.
        assert two.loss == pytest.approx(one.loss, rel=1e-3)
        assert two.utility is not None
        assert two.utility.value == pytest.approx(one.utility.value, abs=0.07)
        assert [leak.status for leak in two.leaks] == [leak.status for leak in one.leaks]


@on_each_device
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_cells_on_a_device_find_what_cells_on_a_cpu_find(tmp_path, device, precision):
    attacks = (NearestNeighbour(), LogitGradient())
    defenses = (NoDefense(), SAP(eta=100.0), P3EFT(weight=0.0), DPSGD(epsilon=None, sigma=1.0))
    plan = make(*defenses, attacks=attacks, limit=32, train={"precision": precision, "epochs": 1})
    there = Runner(moved(plan, device), Store(tmp_path / "there")).run()
    here = Runner(plan, Store(tmp_path / "here")).run()
    for one, other in zip(here, there, strict=True):
        assert (other.status, other.reason) == ("ok", "")
        assert other.loss == pytest.approx(one.loss, abs=0.25)  # dropout is drawn by the device
        assert other.cost.bytes_up == one.cost.bytes_up
        assert other.cost.bytes_down == one.cost.bytes_down
        for leak, its in zip(one.leaks, other.leaks, strict=True):
            assert (its.status, its.goal, its.view) == (leak.status, leak.goal, leak.view)
            if leak.status == "ok" and leak.goal == "inversion":
                # Noise is drawn by NumPy, so the same tokens were sent; their neighbours are exact.
                assert its.success.value == pytest.approx(leak.success.value, abs=0.005)
            elif leak.status == "ok":
                assert its.success.value == 1.0  # the sign of ∂loss/∂logits has no tolerance
