"""What would reach a model: texts, rows and noise of each training of a defense that hands out models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from cells import load_tiny
from released import TEXTS, plan_of

from leakboard.bench.contracts.cell import TrainSettings
from leakboard.bench.defending import dp_sgd
from leakboard.bench.exchange import model_release
from leakboard.bench.exchange.wire import Wire
from leakboard.bench.running.cell_context import context_of
from leakboard.bench.tasks.task import Span, Split, Task

HIDDEN = ("parcel", "refund")
"""The secrets of the texts."""
TWICE = Task(
    "twice",
    (),
    {
        "train": Split(
            tuple(f"call {name} at {n}" for n in range(8) for name in HIDDEN),
            np.zeros(16, np.int64),
            secrets=((Span(5, 11, "name"),),) * 16,
        ),
        "dev": TEXTS.splits["dev"],
    },
)
"""Each text is there twice once its secret is masked."""


@dataclass(frozen=True)
class Training:
    """One training of a released model.

    Attributes:
        private: whether by DP-SGD.
        clear: rows of which a secret is shown.
        masked: rows of which a secret was masked.
        rows: that are trained on, or None for all.
        sigma: the noise multiplier of DP-SGD.
        release: whether the model is handed out.
        settings: of the training.
    """

    private: bool
    clear: set[int]
    masked: set[int]
    rows: list[int] | None
    sigma: float | None
    release: bool
    settings: TrainSettings


def spent(sigma: float, rate: float, steps: int, delta: float) -> float:
    """Stands for the accountant, which takes a second; all that it is given shows in the answer."""
    return 1e3 * rate * steps / sigma + delta


def noise(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """Stands for the noise that a budget asks for."""
    return 10 / epsilon


def trainings_of(defense, task: Task = TEXTS, noise_for=noise, **settings):
    """All trainings of a defense, in order, and the session in which they were to happen."""
    seen: list[Training] = []
    tokenizer = load_tiny("tiny-gpt2").tokenizer
    names = torch.tensor(tokenizer.convert_tokens_to_ids(list(HIDDEN)))

    def noted(dp_sgd, settings, tokens, rows, sigma, release):
        shown = {row for row, ids in enumerate(parts(tokens)) if bool(torch.isin(ids, names).any())}
        rows = None if rows is None else [int(row) for row in rows]
        everywhere = set(range(len(tokens)))
        masked = everywhere - shown
        seen.append(Training(dp_sgd, shown, masked, rows, sigma, release, settings))

    def train(session, network, tokens, rows=None, release=True):
        noted(False, session.settings, tokens, rows, None, release)

    def sgd(session, network, tokens, rows, sigma, clip, release=True):
        noted(True, session.settings, tokens, rows, sigma, release)

    plan = plan_of(defense, task=task, **settings)
    scene = context_of(plan, plan.cells[0])
    session = scene.session(Wire(defense.sends, scene.inputs.recorded))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_release, "train", train)
        for module in ("leakboard.bench.defending.private_training", "leakboard.defenses.jft"):
            patch.setattr(f"{module}.sgd", sgd)
        patch.setattr(dp_sgd, "epsilon_spent", spent)
        patch.setattr(dp_sgd, "noise_for", noise_for)
        patch.setattr(dp_sgd, "profile", lambda *given: ())
        defense.fine_tune(session)
    return seen, session


def parts(tokens):
    """The ids of each example."""
    return torch.split(tokens.ids.values, tokens.ids.lengths.tolist())
