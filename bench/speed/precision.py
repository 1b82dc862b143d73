"""Steps of training in bfloat16, against those in float32."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from leakboard.bench.backbones import (
    Backbone,
    LanguageModel,
    Ragged,
    Tokens,
    length_bucketed,
    load_backbone,
)
from leakboard.bench.contracts import MissingExtra, Seeds, TrainSettings, quietly
from leakboard.bench.exchange import Session, Wire
from leakboard.bench.methods import Defense
from leakboard.bench.speed import seconds
from leakboard.bench.speed.figures import Figure
from leakboard.bench.tasks import Task, load_task
from leakboard.defenses.none import NoDefense
from leakboard.defenses.p3eft import P3EFT
from leakboard.defenses.sap import SAP

DEFENSES: tuple[Defense, ...] = (NoDefense(), SAP(), P3EFT(backprop="combined"))


def precision(examples: int = 128, repeats: int = 3) -> list[Figure]:
    """Seconds of an epoch in float32 over those in bf16, alternating, with one thread and with all.

    A processor without units for bf16 has nothing to gain, and so no goal.
    """
    data = os.environ.get("LEAKBOARD_DATA")
    task = load_task("sst2" if data else "reviews", Path(data) if data else None)
    has = _has_units()
    goal, limit = (1.3, 1.0) if has else (None, None)
    found = []
    for number in sorted({1, torch.get_num_threads()}):
        with threads(number):
            for defense in DEFENSES:
                ways = [epoch(defense, task, each, examples) for each in ("float32", "bf16")]
                for way in ways:
                    way()
                full, short = seconds(*ways, repeats=repeats)
                ratio = statistics.median(a / b for a, b in zip(full, short, strict=True))
                told = f"precision: {defense.name}, {number} threads: float32 over bf16"
                found.append(Figure(told, ratio, goal, limit, more=True))
    return found


def language(repeats: int = 3) -> list[Figure]:
    """Seconds of a LoRA step of the model `gemma` on 16 texts of 24 tokens in float32 over those in bf16, in turn.

    None where its extra is not installed.
    """
    try:
        base = load_backbone("gemma")
    except MissingExtra:
        return []
    ways = [lora_step(base, each) for each in ("float32", "bf16")]
    for way in ways:
        way()
    full, short = seconds(*ways, repeats=repeats)
    ratio = statistics.median(a / b for a, b in zip(full, short, strict=True))
    goal = 1.8 if _has_units() else None
    told = f"precision: a LoRA step of {base.name}: float32 over bf16"
    return [Figure(told, ratio, goal, 1.0 if goal else None, more=True)]


def lora_step(
    base: Backbone, precision: str, texts: int = 16, length: int = 24
) -> Callable[[], None]:
    """A pass forward and back of a language model under LoRA, without the optimiser's step."""
    settings = TrainSettings.model_validate({"precision": precision})
    network = LanguageModel(base, settings).train()
    ids = torch.randint(len(base.embeddings), (texts * length,))
    flat = torch.zeros_like(ids)
    tokens = Tokens(Ragged(ids, torch.full((texts,), length)), flat, flat.bool())

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss, _, mask = network.losses(tokens)
        (loss.sum() / mask.sum()).backward()  # type: ignore[no-untyped-call]

    return step


def _has_units() -> bool:
    """Whether the processor says that it computes in bf16. Linux only."""
    try:
        return "bf16" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


def epoch(defense: Defense, task: Task, precision: str, examples: int) -> Callable[[], object]:
    """The steps of a defense over one epoch of some examples, without the optimiser's."""
    session = session_of(defense, task, precision, examples)
    taken: list[Callable[[torch.Tensor, int], float]] = []
    session.fit = lambda one, *_: taken.append(one)  # type: ignore[method-assign]
    defense.fine_tune(session)
    batch = session.settings.batch_size
    batches = length_bucketed(session.train.lengths, batch, session.noise)

    def steps() -> None:
        for rows in batches:
            taken[0](rows, 0)

    return steps


def session_of(
    defense: Defense, task: Task, precision: str, examples: int, device: str = "cpu"
) -> Session:
    """A session of one epoch on MiniLM, of which nothing is recorded."""
    backbone = load_backbone("minilm", device)
    train = task.limited(examples, 0).splits["train"]
    settings = TrainSettings.model_validate({"precision": precision, "epochs": 1})
    return Session(
        train=backbone.encode(train.texts, train.pairs, settings.max_length),
        labels=torch.from_numpy(train.labels),
        classes=len(task.labels),
        backbone=backbone,
        cut=0,
        wire=Wire(defense.sends, {}),
        seeds=Seeds.of(0),
        settings=settings,
        progress=quietly,
    )


@contextmanager
def threads(number: int) -> Iterator[None]:
    """So many threads for torch, and what it had before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
