"""The fine-tuning loop that all defenses share, and its batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from leakboard.bench.backbones import length_bucketed
from leakboard.bench.contracts import Progress, TrainSettings, quietly

MOMENTS = 20
"""Points of the loss curve in a record, and windows of training that are recorded in full."""


WINDOW_ROWS = 256
"""Examples in such a window, if training is long enough."""


WINDOW = 20
"""Steps over which the loss is averaged before it is compared with the divergence bound."""


DIVERGED = 5.0
"""Training counts as diverged when the averaged loss exceeds so many times the loss of guessing."""


class Diverged(Exception):
    """Training left the range of useful numbers."""


def windows(epochs: Sequence[Sequence[Tensor]]) -> dict[int, int]:
    """Moment of each step in about 20 short windows of training, including the first and the last step.

    Windows do not overlap and do not cross the end of an epoch, so no row occurs twice in one.

    Args:
        epochs: batches of rows.
    """
    ends = np.cumsum([len(batches) for batches in epochs])
    total, shortest = int(ends[-1]), min(len(batches) for batches in epochs)
    size = max(len(rows) for batches in epochs for rows in batches)
    width = max(1, min(-(-WINDOW_ROWS // size), total // MOMENTS, shortest))
    found: dict[int, int] = {}
    for start in np.linspace(0, total - width, min(MOMENTS, total // width)).astype(int):
        first = min(start, ends[np.searchsorted(ends, start, side="right")] - width)
        if first not in found:
            moment = len(set(found.values()))
            found |= dict.fromkeys(range(first, first + width), moment)
    return found


def ignore_step(step: int, moment: int | None) -> None:
    """Does nothing; the default callback of `Loop`."""


@dataclass(frozen=True)
class Loop:
    """Fine-tuning by AdamW with a linear schedule.

    Attributes:
        seed: of the order of batches and of dropout.
        classes: number of equally likely classes; the loss of guessing is its logarithm.
        at: called before each step with its number and its moment, or None.
    """

    settings: TrainSettings
    seed: int
    classes: float
    progress: Progress = quietly
    at: Callable[[int, int | None], None] = ignore_step

    def fit(
        self,
        step: Callable[[Tensor, int], float],
        groups: Sequence[dict[str, object]],
        lengths: Tensor,
        drawn: Sequence[Sequence[Tensor]] | None = None,
    ) -> list[float]:
        """Runs all epochs.

        Args:
            step: given the rows of a batch and the epoch, adds to the gradients and returns the loss.
            groups: AdamW parameter groups; a group may set its own `lr`.
            lengths: [n] tokens per training example.
            drawn: the batches of each epoch where the method draws its own. Its `step` then bounds
                the gradients itself: they are not clipped a second time.

        Returns:
            Mean training loss at about 20 moments.

        Raises:
            Diverged: the loss or a gradient is not finite, or the loss is far above that of guessing.
        """
        settings = self.settings
        parameters = [p for group in groups for p in group["params"]]  # type: ignore[attr-defined]
        optimiser = torch.optim.AdamW(
            [dict(group) for group in groups],
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
        )
        rng = np.random.default_rng(self.seed)
        torch.manual_seed(self.seed)
        epochs = drawn or [
            length_bucketed(lengths, settings.batch_size, rng) for _ in range(settings.epochs)
        ]
        total = sum(map(len, epochs))
        warm = round(settings.warmup * total)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimiser, lambda s: (s + 1) / warm if s < warm else (total - s) / max(1, total - warm)
        )
        losses: list[float] = []
        batches = [(epoch, rows) for epoch, batches in enumerate(epochs) for rows in batches]
        moments = windows(epochs)
        for number, (epoch, rows) in enumerate(self.progress("fine-tuning", batches, total)):
            self.at(number, moments.get(number))
            optimiser.zero_grad(set_to_none=True)
            losses.append(step(rows, epoch))
            bound = math.inf if drawn else settings.max_grad_norm
            norm = float(nn.utils.clip_grad_norm_(parameters, bound))
            _check(losses, norm, self.classes)
            optimiser.step()
            schedule.step()
        return [float(np.mean(part)) for part in np.array_split(losses, min(MOMENTS, len(losses)))]


def _check(losses: list[float], norm: float, classes: float) -> None:
    at = f"at step {len(losses)}"
    if not math.isfinite(losses[-1]):
        raise Diverged(f"loss is {losses[-1]} {at}")
    if not math.isfinite(norm):
        raise Diverged(f"gradient norm is {norm} {at}")
    recent = float(np.mean(losses[-WINDOW:]))
    bound = DIVERGED * math.log(classes)
    if len(losses) >= WINDOW and recent > bound:
        raise Diverged(
            f"mean loss of the last {WINDOW} steps is {recent:.3g} {at}, above {bound:.3g}"
        )
