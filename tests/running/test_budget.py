"""Budgets of a plan: passes that are counted on a narrow model, and what follows for a large one."""

from __future__ import annotations

import pytest
import torch
from cells import load_tiny, make, session_of
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode
from training_steps import step_of

from leakboard.attacks import public_label
from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.attacks.prior import Prior
from leakboard.attacks.public_label import PublicLabel
from leakboard.bench.backbones.architecture import Architecture, architecture
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.running.budget import (
    ACCELERATORS,
    CellBudget,
    Passes,
    accelerator,
    budget,
    metered,
)
from leakboard.defenses.frozen import Frozen
from leakboard.defenses.none import NoDefense
from leakboard.defenses.p3eft import P3EFT
from leakboard.defenses.sap import SAP

EPOCHS = 2


def test_flops_of_a_training_step_are_those_that_torch_counts():
    session, _ = session_of(NoDefense(), model="tiny-deep-bert", train={"lora_rank": 1})
    backbone = session.backbone
    step = step_of(NoDefense(), session)
    block = type(backbone.family.stack(backbone.model)[0])
    with metered(block) as meter, sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as c:
        step(torch.arange(16))
    passes, shape = meter(), Architecture.of("", backbone.model)
    assert passes.calls == 2 * backbone.blocks
    # The first block passes no gradient back to frozen embeddings, and adapters are left out.
    assert passes.flops(shape) == pytest.approx(c.get_total_flops(), rel=0.08)


def test_sizes_of_a_published_architecture_are_counted_without_its_weights():
    shape = architecture("roberta-large")
    assert (shape.blocks, shape.width, shape.heads) == (24, 1024, 16)
    assert shape.weights == 12 * 1024**2
    assert shape.parameters == pytest.approx(355e6, rel=0.01)  # Liu et al. 2019, table of sizes


@pytest.fixture(scope="module")
def budgets() -> dict[tuple[str, int], CellBudget]:
    """By defense and epochs, for a model of 4 blocks."""
    shape, found = architecture_of_four(), {}
    for epochs in (EPOCHS, 2 * EPOCHS):
        rows = NoDefense(), Frozen(), P3EFT(weight=0.0, backprop="combined"), SAP(eta=None)
        plan = make(*rows, train={"epochs": epochs, "batch_size": 32}, attacks=(), cut=[0])
        for each in budget(plan, shape, accelerator("h100"), 0.5):
            assert not each.failure
            found[each.planned.cell.defense.name, epochs] = each
    return found


def architecture_of_four() -> Architecture:
    return Architecture.of("four", load_tiny("tiny-bert-4").model)


def test_epochs_cost_training_passes_unless_vectors_are_computed_once(budgets):
    def training(name, epochs):
        return budgets[name, epochs].seconds[0]

    for name in ("none", "sap", "p3eft"):
        assert training(name, 2 * EPOCHS) == pytest.approx(2 * training(name, EPOCHS), rel=0.02)
    assert training("frozen", 2 * EPOCHS) == training("frozen", EPOCHS) > 0


def test_two_adapters_take_two_passes_and_utility_takes_passes_forward_only(budgets):
    plain, adapters = budgets["none", EPOCHS], budgets["p3eft", EPOCHS]
    assert adapters.seconds[0] == pytest.approx(2 * plain.seconds[0], rel=0.02)
    assert adapters.seconds[1] == pytest.approx(2 * plain.seconds[1], rel=0.02)


def test_attacks_that_use_no_model_are_left_out(monkeypatch):
    run = []
    for attack in (NearestNeighbour, Prior):
        monkeypatch.setattr(attack, "guess", lambda self, *_: run.append(self.name) or [])
    plan = make(SAP(eta=None), attacks=(NearestNeighbour(), Prior()))
    budget(plan, architecture_of_four(), accelerator("h100"), 0.5)
    assert run == ["eia-nn"]


def test_what_attacks_learn_from_public_text_is_counted_in_each_cell():
    plan = make(SAP(eta=75.0), SAP(eta=50.0), attacks=(PublicLabel(),), cut=[0])
    first, second = budget(plan, architecture_of_four(), accelerator("h100"), 0.5)
    assert first.seconds[2] == pytest.approx(second.seconds[2], rel=0.01)


def test_a_narrow_model_takes_the_place_of_that_of_an_attack(monkeypatch):
    monkeypatch.setattr(public_label, "load_backbone", None)  # which loads none
    attacks = PublicLabel(epochs=1, model="tiny-roberta"), PublicLabel(epochs=1)
    budgets = [
        budget(make(Frozen(), attacks=(each,)), architecture_of_four(), accelerator("h100"), 0.5)
        for each in attacks
    ]
    assert budgets[0][0].seconds[2] == pytest.approx(budgets[1][0].seconds[2], rel=0.01)


def test_a_large_model_is_bound_by_its_products_and_a_small_one_by_its_launches():
    large, rate = architecture("roberta-large"), 2e13
    step = Passes((12_800, 12_800), (128 * 12_800, 128 * 12_800), 48)
    assert step.seconds(large, rate) == step.flops(large) / rate
    few = Passes((400, 400), (400 * 13, 400 * 13), 48)
    assert few.seconds(architecture_of_four(), rate) == pytest.approx(48 * 40 * 1e-5)
    twice = step.scaled(2, 1)
    assert twice.flops(large) == 2 * step.flops(large)
    assert (twice.calls, step.scaled(2, 1, batches=1).calls) == (2 * step.calls, step.calls)
    longer = step.scaled(1, 2)
    assert 2 * step.flops(large) < longer.flops(large) < 4 * step.flops(large)


@pytest.mark.parametrize("name", ACCELERATORS)
def test_each_accelerator_has_its_rates_and_a_source(name):
    hardware = accelerator(name)
    assert hardware.peak("bf16") > hardware.peak("float32") > 1e10
    assert hardware.source


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: accelerator("h10"), "no accelerator 'h10'. Did you mean 'h100'?"),
        (lambda: architecture("robert-large"), "'robert-large' is neither .* 'roberta-large'"),
    ],
)
def test_unknown_names_get_the_nearest_one(call, message):
    with pytest.raises(LeakboardError, match=message):
        call()


def test_a_configuration_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(LeakboardError, match="cannot be read"):
        architecture(str(tmp_path))
