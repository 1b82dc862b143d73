"""Steps and epochs of training, for measuring: nothing is recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from leakboard.bench.backbones import LanguageModel, length_bucketed
from leakboard.bench.backbones.backbone import Backbone
from leakboard.bench.backbones.ragged import Ragged, Tokens
from leakboard.bench.contracts import Channel, Seeds, TrainSettings, quietly
from leakboard.bench.exchange import Session, Wire
from leakboard.bench.methods import Defense
from leakboard.bench.tasks import Task


def session_of(
    tokens: Tokens, labels: Tensor, backbone: Backbone, classes: int = 2, **settings: Any
) -> Session:
    """A session on all layers of the backbone."""
    return Session(
        train=tokens,
        labels=labels,
        classes=classes,
        backbone=backbone,
        cut=0,
        wire=Wire(frozenset(Channel), {}),
        seeds=Seeds.of(0),
        settings=TrainSettings(**settings),
        progress=quietly,
    )


def step_of(defense: Defense, session: Session) -> Callable[[Tensor], object]:
    """A step of a defense on rows of the session, without the optimiser's."""
    steps: list[Callable[[Tensor, int], float]] = []
    session.fit = lambda step, *_, **__: steps.append(step)  # type: ignore[method-assign]
    defense.fine_tune(session)
    return lambda rows: steps[0](rows, 0)


def batch_step(
    defense: Defense, tokens: Tokens, backbone: Backbone, **settings: Any
) -> Callable[[], object]:
    """A step of a defense on all the tokens at once, with labels that alternate."""
    batch = len(tokens)
    session = session_of(tokens, torch.arange(batch) % 2, backbone, batch_size=batch, **settings)
    step = step_of(defense, session)
    return lambda: step(torch.arange(batch))


def epoch_session(task: Task, backbone: Backbone, precision: str, examples: int) -> Session:
    """A session of one epoch on some examples of a task."""
    train = task.limited(examples, 0).splits["train"]
    tokens = backbone.encode(train.texts, train.pairs, TrainSettings().max_length)
    labels = torch.from_numpy(train.labels)
    settings = {"precision": precision, "epochs": 1}
    return session_of(tokens, labels, backbone, len(task.labels), **settings)


def epoch_steps(defense: Defense, session: Session) -> Callable[[], object]:
    """The steps of one epoch, without the optimiser's."""
    step = step_of(defense, session)
    batches = length_bucketed(session.train.lengths, session.settings.batch_size, session.noise)
    return lambda: [step(rows) for rows in batches]


def whole_epoch(defense: Defense, session: Session) -> Callable[[], None]:
    """One epoch of fine-tuning, from the copy of the public model on."""

    def epoch() -> None:
        defense.fine_tune(replace(session, wire=Wire(frozenset(Channel), {}), loss=[]))
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    return epoch


def lora_step(base: Backbone, precision: str) -> Callable[[], None]:
    """A pass forward and back of LoRA on 16 texts of 24 tokens, without the optimiser's step."""
    network = LanguageModel(base, TrainSettings(precision=precision)).train()
    ids = torch.randint(len(base.embeddings), (16 * 24,))
    zeros = torch.zeros_like(ids)
    tokens = Tokens(Ragged(ids, torch.full((16,), 24)), zeros, zeros.bool())

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss, _, mask = network.losses(tokens)
        (loss.sum() / mask.sum()).backward()

    return step
