"""Every registered defense and attack computes on another device what it computes on a CPU, to the bit."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from cells import make
from simulated_device import NAME, as_on_a_cpu, numbers_arrive, waits
from synchronising import PER_STEP
from targets import task

from leakboard.attacks import canary_exposure, extraction
from leakboard.bench.attacking.adapter_gradients import principal
from leakboard.bench.attacking.posterior import posterior_bound
from leakboard.bench.backbones import Backbone, load_backbone
from leakboard.bench.conformance import trial as trials
from leakboard.bench.conformance.attack_rules import AttackRules
from leakboard.bench.contracts import Channel, Memory, Message, Objective, Plant, TrainSettings
from leakboard.bench.defending import dp_sgd
from leakboard.bench.exchange import Wire
from leakboard.bench.methods import Attack, Defense, registry
from leakboard.bench.running import CellContext, cell_context, context_of, run_cell
from leakboard.defenses.none import NoDefense
from leakboard.defenses.offsite import OffsiteTuning
from leakboard.defenses.p3eft import P3EFT

pytestmark = pytest.mark.simulated
OBJECTIVES = [
    (name, objective)
    for name, defense in registry.defenses().items()
    for objective in ("classification", "language modelling")
    if objective in defense.objectives
]
TARGETS = ("regression", "multilabel")
OTHERS: list[tuple[str, Objective]] = [
    ("none", "regression"),
    ("sap", "regression"),
    ("dpsgd", "regression"),
    ("none", "multilabel"),
    ("sap+frozen", "classification"),
    ("sap+p3eft", "classification"),
]
"""Numbers, sets of labels, and combinations go through the networks and the wire of the others."""


@pytest.fixture(autouse=True)
def _cpu_kernels() -> Iterator[None]:
    with as_on_a_cpu():
        yield


@pytest.fixture
def accountant(monkeypatch) -> None:
    """The accountant, which takes seconds and no tensor of a device."""
    monkeypatch.setattr(dp_sgd, "noise_for", lambda *given: 0.7)
    monkeypatch.setattr(dp_sgd, "profile", lambda *given: ())


def on(device: str, backbone: Backbone) -> Backbone:
    return load_backbone(backbone.name, device) if device != "cpu" else backbone


@dataclass
class Run:
    """What came of a fine-tuning.

    Attributes:
        predicted: class scores, or −ln p of each token of a language model.
        waits: how often its second step waited for the device, by file and operation.
    """

    messages: tuple[Message, ...]
    loss: list[float]
    predicted: torch.Tensor
    waits: dict[str, int]


class SecondStepAlone(Wire):
    """Counts what happens in the second step, of which nothing is recorded: so are most of a long training."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.counts: list[Counter[tuple[str, str]]] = []

    def at(self, step: int, moment: int | None) -> None:
        super().at(step, None if step == 1 else moment)
        self.counts.append(waits.copy())

    def _record(self, *given: Any) -> None:
        if self._step != 1:
            super()._record(*given)


def run_on(device: str, defense: Defense, objective: Objective) -> Run:
    """Fine-tunes a tiny model and predicts, at the last cut at which the defense can."""
    causal = objective == "language modelling"
    encoder = "tiny-bert" if defense.least_blocks <= 2 else "tiny-deep-bert"
    plan = make(
        defense,
        task=task(objective) if objective in TARGETS else "dialogues" if causal else "reviews",
        model="tiny-gpt2" if causal else encoder,
        cut=(0, 1),
        limit=24,
        train={"epochs": 1, "batch_size": 8},
        attacks=(),
    )
    planned = [cell for cell in plan.cells if not cell.skip_reason][-1]
    context = context_of(plan, planned)
    context = replace(context, backbone=on(device, context.backbone))
    wire = SecondStepAlone(frozenset(Channel), context.inputs.recorded)
    session = context.session(wire)
    tuned = planned.defense.fine_tune(session)
    tokens = context.inputs.tokens["dev"]
    predicted = tuned.per_token(tokens, "dev")[0].values if causal else tuned.predict(tokens, "dev")
    assert predicted.device.type == "cpu"
    second = wire.counts[2] - wire.counts[1] if len(wire.counts) > 3 else Counter()
    found = {f"{where.rsplit(':')[0]} {kind}": n for (kind, where), n in sorted(second.items())}
    return Run(wire.transcript().messages, session.loss, predicted, found)


def quick(name: str, objective: Objective) -> Defense:
    """With its default parameters, but a short distillation, and no regulariser where there are no classes."""
    if name == "offsite-tuning":
        return OffsiteTuning(steps=2)
    if (name, objective) == ("p3eft", "language modelling"):
        return P3EFT(weight=0)
    return registry.defense(name)()


@pytest.mark.usefixtures("accountant")
@pytest.mark.parametrize(("name", "objective"), OBJECTIVES)
def test_a_defense_learns_sends_and_predicts_on_a_device_what_it_does_on_a_cpu(name, objective):
    here, there = (run_on(where, quick(name, objective), objective) for where in ("cpu", NAME))
    assert trials.same_messages(there.messages, here.messages)
    assert there.loss == here.loss
    assert torch.equal(there.predicted, here.predicted)
    assert there.waits == PER_STEP.get((name, objective)), "see tests/builders/synchronising.py"
    assert not here.waits


@pytest.mark.usefixtures("accountant")
@pytest.mark.parametrize(("name", "objective"), OTHERS)
def test_targets_and_combinations_are_trained_on_a_device_as_on_a_cpu(name, objective):
    here, there = (run_on(where, quick(name, objective), objective) for where in ("cpu", NAME))
    assert here.messages
    assert trials.same_messages(there.messages, here.messages)
    assert there.loss == here.loss
    assert torch.equal(there.predicted, here.predicted)
    assert there.waits
    assert not here.waits


SMALL = {"sentences": 48, "epochs": 1, "steps": 6, "candidates": 8, "rows": 100, "releases": "last"}
"""Parameters by which attacks do less."""


IN_WHOLE_CELLS = {"keep-emulator": OffsiteTuning(steps=2), "adapter-difference": P3EFT(weight=0)}
"""Attacks that read what the customer holds after training, or what no undefended cell sends."""


def smaller(name: str) -> Attack:
    attack = registry.attack(name)()
    fields = type(attack).model_fields
    wanted = {k: v for k, v in SMALL.items() if k in fields and type(getattr(attack, k)) is type(v)}
    return attack.model_copy(update=wanted)


@pytest.fixture
def forget(monkeypatch) -> Callable[[], None]:
    """Drops what attacks remember from a run on another device."""
    recall, memories = Memory.recall, defaultdict[int, Memory](lambda: Memory(capacity=1000))
    monkeypatch.setattr(
        Memory, "recall", lambda self, key, learn: recall(memories[id(self)], key, learn)
    )
    return memories.clear


def leaks_alike(here: CellContext) -> None:
    """Runs a cell on a CPU and on the device, and compares the leaks to the bit."""
    one = run_cell(here).leaks
    with numbers_arrive():
        other = run_cell(replace(here, backbone=on(NAME, here.backbone))).leaks
    assert any(leak.status == "ok" for leak in one)
    assert [leak.model_copy(update={"seconds": 0.0}) for leak in other] == [
        leak.model_copy(update={"seconds": 0.0}) for leak in one
    ]


@pytest.mark.usefixtures("accountant")
@pytest.mark.parametrize("name", registry.attacks())
def test_an_attack_guesses_on_a_device_what_it_guesses_on_a_cpu(name, forget, monkeypatch):
    few = Plant(canaries=("my id is {digits}",), copies=(4,), each=2, unseen=4)
    monkeypatch.setattr(trials, "CANARIES", few)
    # A thousand candidates, fifty continuations and five prompts go the way of more.
    monkeypatch.setattr(canary_exposure, "DIGITS", 3)
    monkeypatch.setattr(extraction, "SAMPLES", 50)
    monkeypatch.setattr(cell_context, "MAX_PROMPTS", 5)
    monkeypatch.setattr(
        trials, "TrainSettings", lambda **given: TrainSettings(**given | {"epochs": 1})
    )
    if name in IN_WHOLE_CELLS:
        here = trials.Trial.of(IN_WHOLE_CELLS[name], [smaller(name)], examples=24).context()
        leaks_alike(here)
        return
    if name == "answer-reading":  # reads what is recorded after training, where a suite asks for it
        plan = make(
            NoDefense(head="vendor"),
            task="replies",
            model="tiny-gpt2",
            limit=8,
            record={"answers": True},
            train={"epochs": 1, "batch_size": 4, "max_length": 48},
            attacks=(smaller(name),),
        )
        leaks_alike(context_of(plan, next(cell for cell in plan.cells if not cell.skip_reason)))
        return
    for scene in AttackRules(smaller(name), "tiny-bert").stages(examples=24):
        base = scene.trial.backbone
        found = []
        for trial in (scene.trial, replace(scene.trial, backbone=on(NAME, base))):
            forget()
            with numbers_arrive():
                found.append(trial.guesses(trials.copy_transcript(scene.sent)))
        assert trials.same_messages(found[1], found[0])
        if found[0]:  # what it can read was sent
            return
    raise AssertionError("there is no cell in which it guesses")


def test_what_needs_float64_is_computed_on_the_cpu():
    # No undefended cell has a bound, and attacks read these coordinates in few.
    x, words = torch.randn(2, 6, 4), torch.tensor([5, 1, 3, 0, 2, 9])
    with pytest.raises(TypeError, match="has no float64"):
        x.to(NAME).double()
    assert np.array_equal(principal([*x.to(NAME)]), principal([*x]))
    assert posterior_bound(x[0].to(NAME), words, 0.5) == posterior_bound(x[0], words, 0.5)


def test_texts_behind_a_block_have_the_means_that_they_have_on_a_cpu(tiny):
    # Attackers encode public texts so, by a third of the blocks: none of so small a model.
    tokens = tiny.encode(["the film was good", "bad", "food is not quite bright"], None, 16)
    assert torch.equal(on(NAME, tiny).pooled(tokens, 1).cpu(), tiny.pooled(tokens, 1))
