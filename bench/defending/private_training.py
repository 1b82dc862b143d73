"""Code shared by defenses that train with DP-SGD: budget, training loop and claim."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, ClassVar

from pydantic import Field, model_validator
from torch import Tensor

from leakboard.bench.backbones import Tokens, by_length
from leakboard.bench.contracts import (
    EVERY_OBJECTIVE,
    Channel,
    Claim,
    Goal,
    Objective,
    TrainSettings,
)
from leakboard.bench.defending import dp_sgd
from leakboard.bench.defending.mechanisms import Epsilon
from leakboard.bench.exchange import Session, Trainee, model_release
from leakboard.bench.methods import Defense

AT_ONCE = 256
"""Largest number of examples whose gradients are in memory at once."""
FORWARD_BYTES = 2**31
"""Approximate limit in bytes of activations that are stored for the backward pass."""
BYTES_PER_STATE = 100
"""Estimated bytes of activations per block and number of a hidden state."""
CPU_PASS_SIZE, CPU_LARGEST_PASS = 8, 64
"""Smallest and largest number of examples of similar length per pass on a CPU, an eighth of the batch between them.
Poisson batches mix lengths, and on SST-2 two thirds of a batch would be padding. Passes of 64 instead of 8 take half of
the time in batches of 480 (MiniLM, LoRA, bf16; 0.74 in float32), and 1.6 times as long in batches of 32."""

HEAD_TRIALS = ((0.1, 30), (0.03, 30), (0.03, 100), (0.1, 100), (0.3, 30), (1.0, 30), (0.3, 100))
"""Tuning trials of a head alone: learning rate, and number of epochs of one batch each."""
LORA_TRIALS = ((10, 2, 8), (10, 4, 8), (10, 4, 1), (3, 2, 8), (3, 4, 8), (3, 4, 1), (10, 1, 8))
FULL_TRIALS = ((1, 2, 4), (3, 2, 4), (1, 4, 4), (3, 4, 4), (1, 4, 1), (3, 4, 1), (1, 2, 1))
"""Tuning trials: factor of the learning rate, factor of the epochs, and number of batches per epoch. With more weights,
gradients are noisier and learning rates must be smaller."""


class Private(Defense):
    """A defense that trains with DP-SGD: Poisson sampling at rate B/N, clipping, Gaussian noise.

    The number of steps is that of ordinary training. Either ε or σ is given.
    """

    emits: ClassVar[frozenset[Channel]] = frozenset({Channel.MODEL})
    objectives: ClassVar[frozenset[Objective]] = EVERY_OBJECTIVE
    protects: ClassVar[frozenset[Goal]] = frozenset({Goal.MEMORISATION, Goal.MEMBERSHIP})
    knob: ClassVar[str | None] = "epsilon"

    epsilon: Epsilon = 3.0
    """ε of (ε, δ)-differential privacy; smaller hides more; "none" if sigma is given."""
    sigma: float | None = Field(None, gt=0)
    """Noise multiplier, instead of ε."""
    delta: float | None = Field(None, gt=0, lt=1)
    """δ; by default 0.1/n for n training examples. Abadi et al. fix it at 1e-5, whatever n is. At 1/n the guarantee
    would allow publishing one example, so the default stays below."""
    clip: float = Field(1.0, gt=0)
    """C, the largest norm of one example's gradient."""

    @model_validator(mode="after")
    def _one_of_two(self) -> Private:
        if self.epsilon is not None and self.sigma is not None:
            raise ValueError("give epsilon or sigma: use `epsilon: none` with sigma")
        return self

    @property
    def has_claim(self) -> bool:
        return not self.undefended

    def tried(self, settings: TrainSettings, n: int, classes: int) -> Sequence[Mapping[str, Any]]:
        """Settings for small ε: large batches up to all examples, more epochs and higher rates, of a head and of LoRA in turns."""
        if self.undefended:
            return super().tried(settings, n, classes)
        rate, epochs = settings.learning_rate, settings.epochs
        head_trials = [
            {"tune": "head", "learning_rate": rate, "epochs": steps, "batch_size": n}
            for rate, steps in HEAD_TRIALS
        ]
        full = settings.tune == "full"
        batches = [
            {
                "tune": "full" if full else "lora",
                "learning_rate": up * rate,
                "epochs": long * epochs,
                "batch_size": max(settings.batch_size, n // part),
            }
            for up, long, part in (FULL_TRIALS if full else LORA_TRIALS)
        ]
        if not classes:
            return batches
        return [each for pair in zip_longest(head_trials, batches) for each in pair if each]

    def train_privately(
        self, session: Session, network: Trainee, tokens: Tokens, rows: Tensor
    ) -> Claim:
        """Trains with DP-SGD on some of the training examples, and returns the claim.

        If there are fewer examples than a batch holds, every one is in every batch.

        Args:
            tokens: one example for each row of the session's texts.
            rows: [n] rows of the training examples.

        Raises:
            LeakboardError: ε or δ out of range.
        """
        claim = self.claim_for(len(rows), session.settings)
        sgd(session, network, tokens, rows, claim.parameters["sigma"], self.clip)
        return claim

    def claim_for(self, n: int, settings: TrainSettings, complete: bool = True) -> Claim:
        """The claim of DP-SGD on n examples.

        Args:
            complete: include the profile, and σ if it follows from ε; both take an accountant seconds.

        Raises:
            LeakboardError: ε or δ out of range.
        """
        size, epochs = settings.batch_size, settings.epochs
        rate, steps = min(1.0, size / n), math.ceil(n / size) * epochs
        delta = self.delta or 0.1 / n
        dp_sgd.check_claim(self.epsilon or 1.0, delta, n)
        epsilon, sigma = self.epsilon, self.sigma
        if epsilon is None:
            assert sigma is not None
            epsilon = dp_sgd.epsilon_spent(sigma, rate, steps, delta)
        parameters = {"epsilon": epsilon, "delta": delta}
        profile: tuple[tuple[float, float], ...] = ()
        if complete:
            sigma = sigma or dp_sgd.noise_for(epsilon, delta, rate, steps)
            parameters |= {"sigma": sigma, "rate": rate, "steps": steps, "clip": self.clip}
            profile = dp_sgd.profile(epsilon, delta, sigma, rate, steps)
        return Claim(
            guarantee="(ε, δ)-differential privacy of single training examples, by Opacus's PRV accountant",
            parameters=parameters,
            covers="every token of each example; a text that occurs k times has kε",
            unit="example",
            profile=profile,
        )


def sgd(
    session: Session,
    network: Trainee,
    tokens: Tokens,
    rows: Tensor,
    sigma: float,
    clip: float,
    release: bool = True,
) -> None:
    """The loop of DP-SGD on `rows`, for the session's epochs."""
    n, size = len(rows), min(session.settings.batch_size, len(rows))
    steps = math.ceil(n / size)
    drawn = [
        [rows[batch] for batch in dp_sgd.poisson_batches(n, size / n, steps, session.noise)]
        for _ in range(session.settings.epochs)
    ]
    network.train()
    hooked = session.settings.tune != "full"
    losses_of = model_release.losses_of(session, network, tokens, session.labels)
    pieces = _pass_size(session, tokens, size) if hooked else 1
    with dp_sgd.PrivateGradients(network, clip, sigma, size, session.noise, hooked) as gradients:

        def step(batch: Tensor) -> float:
            total = 0.0
            # Gradients are clipped per example, so the size of a pass affects only memory, time and dropout.
            for part in passes(batch, tokens.lengths, pieces):
                losses = losses_of(part)
                gradients.add(losses)
                total += losses.sum().item()
            gradients.release()
            return total / max(1, len(batch))

        model_release.fit(session, network, step, tokens.lengths, drawn, release)


def _pass_size(session: Session, tokens: Tokens, batch: int) -> int:
    """Number of examples per pass through the model, for batches of `batch` examples."""
    if session.settings.tune == "head":
        return AT_ONCE
    backbone, longest = session.backbone, int(tokens.lengths.max())
    bytes_per_example = BYTES_PER_STATE * backbone.blocks * backbone.width * longest
    on_cpu = min(max(CPU_PASS_SIZE, batch // CPU_PASS_SIZE), CPU_LARGEST_PASS)
    largest = on_cpu if backbone.device == "cpu" else AT_ONCE
    return min(largest, max(1, FORWARD_BYTES // bytes_per_example))


def passes(batch: Tensor, lengths: Tensor, size: int) -> list[Tensor]:
    """Rows of a batch in parts of at most `size`, sorted by length if there are several parts."""
    if len(batch) <= size:
        return [batch] if len(batch) else []
    return [batch[part] for part in by_length(lengths[batch], size)]
