"""Training in bfloat16 against float32, and a GPU against two cores. All are long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarking import Figure
from processor_threads import ALL, threads
from training_steps import batch_step, epoch_session, epoch_steps, lora_step, whole_epoch
from transformers import AutoConfig, AutoModel

from leakboard.bench.backbones import load_backbone
from leakboard.bench.backbones.architecture import CONFIGURATIONS, Architecture
from leakboard.bench.backbones.backbone import Backbone
from leakboard.bench.backbones.ragged import Ragged, Tokens
from leakboard.bench.contracts import MissingExtra
from leakboard.bench.defending import privatise_tokens
from leakboard.bench.running.budget import ACCELERATORS, metered
from leakboard.defenses.dpsgd import DPSGD
from leakboard.defenses.none import NoDefense
from leakboard.defenses.p3eft import P3EFT
from leakboard.defenses.sap import SAP

pytestmark = pytest.mark.long
PRECISIONS = ("bf16", "float32")
DEFENSES = (NoDefense(), SAP(), P3EFT(backprop="combined"))
DEVICES = ("cuda", "cpu")
CORES = 2
TOKENS = 65_536
STEPS = 10
SIZES = [(32, 16), (32, 64), (128, 64)]
"""Texts of a batch, and tokens of each."""
ON_GPU = {
    "none, float32": (NoDefense(), "float32"),
    "none, bf16": (NoDefense(), "bf16"),
    "sap, float32": (SAP(), "float32"),
    "p3eft by calls": (P3EFT(), "float32"),
    "dpsgd": (DPSGD(epsilon=None, sigma=1.0), "float32"),
}


def report_precision(comparison, name: str, goal: float | None) -> None:
    """Without units for bf16 a processor has nothing to gain, and so no goal. Linux only."""
    info = Path("/proc/cpuinfo")
    bounds = (goal, 1.0) if info.exists() and "bf16" in info.read_text() else (None, None)
    name = f"precision: {name}: float32 over bf16"
    comparison.report(Figure(name, 1 / comparison.ratio(), *bounds, more=True))


@pytest.mark.parametrize("number", sorted({1, ALL}))
@pytest.mark.parametrize("defense", DEFENSES, ids=lambda defense: defense.name)
def test_precision(comparison, task, minilm, defense, number):
    """Seconds of an epoch in float32 over those in bf16."""
    sessions = [epoch_session(task, minilm, each, examples=128) for each in PRECISIONS]
    with threads(number):
        comparison.measure(*(epoch_steps(defense, session) for session in sessions))
    # The split gradients of P³EFT need float32.
    goal = None if defense.name == "p3eft" else 1.3
    report_precision(comparison, f"{defense.name}, {number} threads", goal)


def test_precision_of_gemma(comparison):
    """Seconds of a LoRA step of the model `gemma` in float32 over those in bf16."""
    try:
        base = load_backbone("gemma")
    except MissingExtra as missing:
        pytest.skip(str(missing))
    comparison.measure(*(lora_step(base, each) for each in PRECISIONS))
    report_precision(comparison, f"a LoRA step of {base.name}", 1.8)


def compare_with_cores(comparison, name: str, *works: Callable[[], object]) -> None:
    """Seconds of a work on two cores over those on the GPU."""
    with threads(CORES):
        comparison.measure(*works)
    name = f"{name}: {CORES} cores over {torch.cuda.get_device_name()}"
    comparison.report(Figure(name, 1 / comparison.ratio(), more=True))


@pytest.mark.gpu
def test_snap_on_gpu(comparison):
    """Noise on words of MiniLM, and their nearest words."""

    def snap(device: str) -> Callable[[], object]:
        base, rng = load_backbone("minilm", device), np.random.default_rng(0)
        ids = torch.from_numpy(rng.integers(len(base.embeddings), size=TOKENS))
        return lambda: privatise_tokens(ids, base.embeddings, base.neighbours, 75.0, rng)

    compare_with_cores(comparison, f"snap of {TOKENS:,} tokens", *map(snap, DEVICES))


@pytest.mark.gpu
@pytest.mark.parametrize("name", ON_GPU)
def test_epoch_on_gpu(comparison, task, name):
    """An epoch of fine-tuning of MiniLM."""
    defense, precision = ON_GPU[name]
    bases = [load_backbone("minilm", device) for device in DEVICES]
    sessions = [epoch_session(task, base, precision, examples=512) for base in bases]
    works = [whole_epoch(defense, session) for session in sessions]
    compare_with_cores(comparison, f"one epoch, {name}", *works)


@cache
def random_backbone(name: str, device: str) -> Backbone:
    """A model of a published size with random weights, and words of a tiny one."""
    tiny = load_backbone("tiny-roberta", device)
    config = AutoConfig.for_model(**CONFIGURATIONS[name])
    model = AutoModel.from_config(config, add_pooling_layer=False).eval()
    return replace(tiny, name=name, model=model.to(device))


@pytest.mark.gpu
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", ["roberta-base", "roberta-large"])
def test_share_of_the_peak(comparison, name, size, precision):
    """Share of a GPU's peak rate that steps of LoRA reach, which `leakboard plan --on` assumes as its efficiency."""
    base, (texts, length) = random_backbone(name, "cuda"), size
    ids = torch.randint(10, 1000, (texts * length,))
    none = torch.zeros_like(ids)
    tokens = Tokens(Ragged(ids, torch.full((texts,), length)), none, none.bool())
    step = batch_step(NoDefense(), tokens, base, precision=precision)
    with metered(type(base.family.stack(base.model)[0])) as meter:
        step()
    flops = meter().flops(Architecture.of(name, base.model))

    def steps() -> None:
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()

    comparison.measure(steps)
    peak = next(a for key, a in ACCELERATORS.items() if key in torch.cuda.get_device_name().lower())
    share = flops * STEPS / comparison.median / peak.peak(precision)
    name = f"{name}, {texts} texts of {length} tokens, {precision}"
    comparison.report(
        Figure(f"seconds of a step: {name}", comparison.median / STEPS, unit="s"),
        Figure(f"share of the peak: {name}", share, more=True),
    )
