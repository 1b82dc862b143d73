"""What defenses that train with DP-SGD share: the budget, the loop and the claim."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field, model_validator
from torch import Tensor

from bench.backbones import Tokens
from bench.contracts import Channel, Claim, Goal, Objective
from bench.defending import private
from bench.exchange import Session, Trainee, released
from bench.methods import Defense

Epsilon = Annotated[
    Annotated[float, Field(gt=0)] | None, BeforeValidator(lambda v: None if v == "none" else v)
]


class Private(Defense):
    """A defense that trains with DP-SGD: Poisson sampling at rate B/N, clipping, Gaussian noise.

    It trains for as many steps as ordinary training would. Either ε or σ is given.
    """

    emits: ClassVar[frozenset[Channel]] = frozenset({Channel.MODEL})
    objectives: ClassVar[frozenset[Objective]] = frozenset({"classification", "language modelling"})
    protects: ClassVar[frozenset[Goal]] = frozenset({Goal.MEMORISATION, Goal.MEMBERSHIP})
    knob: ClassVar[str | None] = "epsilon"

    epsilon: Epsilon = 3.0
    """ε of (ε, δ)-differential privacy; smaller hides more; "none" where sigma is given instead."""
    sigma: float | None = Field(None, gt=0)
    """Noise multiplier, in place of ε."""
    delta: float | None = Field(None, gt=0, lt=1)
    """δ; by default a tenth of one over the number of training examples."""
    clip: float = Field(1.0, gt=0)
    """C, the largest norm of one example's gradient."""

    @model_validator(mode="after")
    def _one_of_two(self) -> Private:
        if self.epsilon is not None and self.sigma is not None:
            raise ValueError("give epsilon or sigma: `epsilon: none` lets sigma decide")
        return self

    def train_privately(
        self, session: Session, network: Trainee, tokens: Tokens, rows: Tensor
    ) -> Claim:
        """DP-SGD on some of the training examples, and what it guarantees.

        Where there are fewer of them than a batch holds, every one is in every batch.

        Args:
            tokens: one for each row of the session's texts.
            rows: [n] those that are trained on.

        Raises:
            LeakboardError: ε or δ out of range.
        """
        n, size, epochs = len(rows), session.settings.batch_size, session.settings.epochs
        steps = math.ceil(n / size)
        rate = min(1.0, size / n)
        delta = self.delta or 0.1 / n
        private.check(self.epsilon or 1.0, delta, n)
        if self.sigma is not None:
            sigma, epsilon = self.sigma, private.spent(self.sigma, rate, steps * epochs, delta)
        else:
            assert self.epsilon is not None
            sigma = private.noise_for(self.epsilon, delta, rate, steps * epochs)
            epsilon = self.epsilon
        sgd(session, network, tokens, rows, sigma, self.clip)
        return Claim(
            guarantee="(ε, δ)-differential privacy of single training examples, by Opacus's PRV accountant",
            parameters={
                "epsilon": epsilon,
                "delta": delta,
                "sigma": sigma,
                "rate": rate,
                "steps": steps * epochs,
                "clip": self.clip,
            },
            covers="every token of each example; a text that occurs k times has kε",
            unit="example",
            profile=private.profile(epsilon, delta, sigma, rate, steps * epochs),
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
        [rows[batch] for batch in private.poisson_batches(n, size / n, steps, session.noise)]
        for _ in range(session.settings.epochs)
    ]
    network.train()
    hooked = session.settings.tune == "lora"
    with private.PrivateGradients(network, clip, sigma, size, session.noise, hooked) as gradients:

        def step(batch: Tensor) -> float:
            total = 0.0
            parts = batch[None] if hooked else batch[:, None]
            for part in parts if len(batch) else ():
                with session.autocast():
                    found = released.losses(network, tokens.take(part), session.labels[part])
                gradients.add(found.float())
                total += found.sum().item()
            gradients.release()
            return total / max(1, len(batch))

        released.fit(session, network, step, tokens.lengths, drawn, release)
