"""Worst-case audit of the DP-SGD implementation, with and without deliberate faults.

    python -m leakboard.bench.conformance.worst_case

A head is trained on canaries with orthogonal features that are longer than the clipping norm. Each canary then adds the
largest possible gradient in a direction of its own, so an observer of all noisy gradients faces only the noise: no data
are harder to protect. The faults are known faults of implementations, which an audit has to find.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from leakboard.bench.defending import PrivateGradients, dp_sgd
from leakboard.bench.scoring import one_run

Fault = Literal["intact", "noise halved", "clipping skipped", "batches in order"]
LONG = 10.0
"""Norm of the features of a canary; its gradient is clipped to norm 1."""
SLOW = 1e-3
"""Learning rate, so small that gradients hardly change during training."""


@dataclass(frozen=True)
class Trial:
    """One private training of a head on canaries, each a member by a fair coin.

    Attributes:
        rate: probability with which a canary enters a batch.
    """

    epsilon: float = 8.0
    delta: float = 1e-5
    canaries: int = 1000
    rate: float = 0.02
    steps: int = 400

    def audited(self, fault: Fault = "intact", seed: int = 0) -> Audit:
        """Result of an audit, with a fault or without one."""
        sigma, profile = _claimed(self)
        rng = np.random.default_rng(seed)
        member = rng.random(self.canaries) < 0.5
        seen = np.stack([*self._signals(fault, sigma, member, rng)])
        # Two tries at half the significance level: batches by Poisson sampling, as claimed, or in order.
        # Guesses about half of the canaries prove most for all faults.
        likelier = np.log1p(self.rate * np.expm1((seen - 0.5) / sigma**2)).sum(0)
        turns = (
            np.arange(self.steps)[:, None] % self._round == np.arange(self.canaries) // self._size
        )
        guesses, confidence = [self.canaries // 4], 1 - (1 - one_run.CONFIDENCE) / 2
        chance, turn, perfect = (
            one_run.audit(scores, member, self.delta, profile, guesses, confidence)
            for scores in (likelier, (seen * turns).sum(0), member)
        )
        return Audit(fault, self.epsilon, max(chance, turn), perfect)

    @property
    def _size(self) -> int:
        return round(self.rate * self.canaries)

    @property
    def _round(self) -> int:
        """Number of batches in which each canary occurs once, in order."""
        return -(-self.canaries // self._size)

    def _signals(
        self, fault: Fault, sigma: float, member: NDArray[np.bool_], rng: Generator
    ) -> Iterator[NDArray[np.float64]]:
        """[m] component of each step's noisy gradient in the direction of each canary; members add 1."""
        n = self.canaries
        # Canaries that are no members have features of 0.
        features = torch.diag(torch.from_numpy(member * LONG).float())
        labels = torch.from_numpy(rng.integers(2, size=n))
        head = nn.Linear(n, 2, bias=False)
        nn.init.zeros_(head.weight)
        towards = torch.where(labels == 1, 1.0, -1.0) * torch.tensor([[1.0], [-1.0]]) / 2**0.5
        optimiser = torch.optim.SGD(head.parameters(), SLOW)
        kind = Unclipped if fault == "clipping skipped" else PrivateGradients
        noise = sigma / 2 if fault == "noise halved" else sigma
        with kind(head, 1.0, noise, self.rate * n, rng) as gradients:
            for rows in self._batches(fault, rng):
                if len(rows):
                    losses = cross_entropy(head(features[rows]), labels[rows], reduction="none")
                    gradients.add(losses)
                gradients.release()
                assert head.weight.grad is not None
                yield (head.weight.grad * self.rate * n * towards).sum(0).double().numpy()
                optimiser.step()

    def _batches(self, fault: Fault, rng: Generator) -> Sequence[Tensor]:
        if fault != "batches in order":
            return dp_sgd.poisson_batches(self.canaries, self.rate, self.steps, rng)
        parts = torch.split(torch.arange(self.canaries), self._size)
        return [parts[step % self._round] for step in range(self.steps)]


class Unclipped(PrivateGradients):
    """Sums of unclipped gradients."""

    def add(self, losses: Tensor) -> None:
        for total, gradient in zip(self.sums, self.per_example(losses), strict=True):
            total += gradient.sum(0)


@dataclass(frozen=True)
class Audit:
    """Claimed, proven and largest provable ε of an audit."""

    fault: Fault
    claimed: float
    bound: float
    ceiling: float

    @property
    def caught(self) -> bool:
        return self.bound > self.claimed

    def __str__(self) -> str:
        return (
            f"{self.fault:>17}: at least ε = {self.bound:.2f} (a perfect attacker {self.ceiling:.2f}), "
            f"claimed {self.claimed:g}: {'caught' if self.caught else 'nothing found'}"
        )


@cache
def _claimed(trial: Trial) -> tuple[float, tuple[tuple[float, float], ...]]:
    """Noise multiplier for the claim, and the resulting privacy profile."""
    how = (trial.rate, trial.steps)
    sigma = dp_sgd.noise_for(trial.epsilon, trial.delta, *how)
    return sigma, dp_sgd.profile(trial.epsilon, trial.delta, sigma, *how)


SAMPLED = Trial()
FULL_BATCH = Trial(rate=1.0, steps=4)
"""Trial with every canary in every batch, so that only the noise protects it."""


def main() -> None:
    """Prints the audits of the intact DP-SGD and of each fault."""
    for trial, faults in ((FULL_BATCH, get_args(Fault)[:3]), (SAMPLED, get_args(Fault))):
        print(f"{trial.steps} batches, each canary in each with probability {trial.rate:g}")
        for fault in faults:
            print(trial.audited(fault))


if __name__ == "__main__":
    main()
