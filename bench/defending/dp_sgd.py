"""DP-SGD (Abadi et al. 2016): Poisson sampling, clipped gradients of single examples, Gaussian noise.

Opacus (extra `dp`) does the accounting and the gradients of single examples.
"""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Self

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor, nn

from leakboard.bench.contracts import LeakboardError, MissingExtra

PRECISION = 0.005
"""Relative error of ε in the accountant."""
FINEST = 1e-4
"""Smallest absolute error of ε; the accountant's time and memory grow with its inverse."""
PAIRS = 12
"""Number of (ε, δ) pairs in a profile."""
COARSE = 0.1
"""Absolute error of the first estimate, which determines the error of the next."""


def check_claim(epsilon: float, delta: float, n: int) -> None:
    """Raises LeakboardError unless (ε, δ) is a claim that protects one example of n."""
    if not 0 < epsilon < math.inf:
        raise LeakboardError(f"epsilon: expected a finite number above 0, not {epsilon}")
    if not 0 < delta < 1 / n:
        raise LeakboardError(
            f"delta: expected a number between 0 and 1/{n} (one over the training examples), not "
            f"{delta}: a mechanism that publishes one random example would satisfy it"
        )


@cache
def noise_for(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """Smallest noise multiplier σ at which `steps` steps spend at most ε, to within 1 %.

    Args:
        rate: probability with which an example enters a batch, in (0, 1].

    Raises:
        LeakboardError: values out of range, or an ε that no σ up to 10^6 reaches.
    """
    check_claim(epsilon, delta, 1)
    _check_sampling(rate, steps)
    noise = _opacus("accountants.utils").get_noise_multiplier
    try:
        with _quiet():
            return float(
                noise(
                    target_epsilon=epsilon,
                    target_delta=delta,
                    sample_rate=rate,
                    steps=steps,
                    accountant="prv",
                    epsilon_tolerance=PRECISION * epsilon,
                    eps_error=max(PRECISION * epsilon, FINEST),
                )
            )
    except ValueError as error:
        raise LeakboardError(
            f"epsilon {epsilon}: no amount of noise is enough for it: {error}"
        ) from None


@cache
def epsilon_spent(sigma: float, rate: float, steps: int, delta: float) -> float:
    """Upper bound on ε at δ of the composed Poisson-subsampled Gaussian mechanism, with an error of 1 % or 10⁻⁴.

    With `rate * missed` for the rate, it is the light-noise estimate of Shi et al. 2022 (JFT) for the secrets that a
    detector missed. That is empirical and no claim, since the share of missed secrets is measured.

    Raises:
        LeakboardError: values out of range.
    """
    if not 0 < sigma < math.inf:
        raise LeakboardError(f"sigma: expected a finite noise multiplier above 0, not {sigma}")
    check_claim(1, delta, 1)
    _check_sampling(rate, steps)
    accountant = _opacus("accountants").PRVAccountant()
    accountant.history = [(sigma, rate, steps)]
    error = COARSE
    with _quiet():
        while True:
            epsilon = float(accountant.get_epsilon(delta, eps_error=error))
            if error <= max(PRECISION * epsilon, FINEST):
                return epsilon
            # Reduced at most tenfold at once, since an estimate far below its error says little about ε.
            error = max(PRECISION * (epsilon - error), error / 10, FINEST)


@cache
def profile(
    epsilon: float, delta: float, sigma: float, rate: float, steps: int
) -> tuple[tuple[float, float], ...]:
    """(ε, δ) pairs that the mechanism satisfies at once: the claimed pair, and the accountant's ε for larger δ.

    The ε are upper bounds, to within 2 % of the claimed ε.
    """
    accountant = _opacus("accountants").PRVAccountant()
    accountant.history = [(sigma, rate, steps)]
    error = max(2 * PRECISION * epsilon, FINEST)
    pairs = [(epsilon, delta)]
    with _quiet():
        # As the accountant's `get_epsilon`, which would compose the steps for every δ.
        composed = accountant._get_dprv(eps_error=error, delta_error=delta / 1000)
        for larger in np.geomspace(delta, 0.5, PAIRS)[1:]:
            *_, bound = composed.compute_epsilon(larger, delta / 1000, error)
            if bound > 0:
                pairs.append((float(bound), float(larger)))
    return tuple(pairs)


def poisson_batches(n: int, rate: float, steps: int, rng: Generator) -> list[Tensor]:
    """Rows of each batch; every one of n examples is in each batch independently with probability `rate`.

    Batch sizes differ, and a batch may be empty.
    """
    _check_sampling(rate, steps)
    return [torch.from_numpy(np.flatnonzero(rng.random(n) < rate)) for _ in range(steps)]


class PrivateGradients:
    """Noisy sums of clipped per-example gradients, written to `.grad`.

    One step is any number of calls of `add`, none for an empty batch, and then `release`:

        with PrivateGradients(network, clip, sigma, rate * n, rng) as private:
            for rows in batches:
                private.add(losses_of(rows))
                private.release()
                optimizer.step()

    Frozen parameters stay unchanged. No layer may mix examples, as batch norm does.

    Opacus's hooks compute the gradients of a batch at once, in layers whose first dimension is that of the examples.
    They do not support trained position embeddings or tied word embeddings; then each loss is differentiated alone.

    Args:
        clip: C, the largest norm of one example's gradient over all trained parameters.
        sigma: noise multiplier; the noise on the sum has standard deviation σC.
        expected: expected batch size, by which the sum is divided, since the actual size is private.
        rng: NumPy generator of the noise, which is then equal on every device.
        hooked: use Opacus's hooks, else differentiate one loss after the other.
    """

    def __init__(
        self,
        module: nn.Module,
        clip: float,
        sigma: float,
        expected: float,
        rng: Generator,
        hooked: bool = True,
    ) -> None:
        if not (0 < clip < math.inf and 0 <= sigma < math.inf and 0 < expected < math.inf):
            raise LeakboardError(
                "clip and the expected batch size must be above 0, sigma at least 0, and all finite; "
                f"not {clip}, {expected}, {sigma}"
            )
        self.clip, self.sigma, self.expected, self.rng = clip, sigma, expected, rng
        self.trained = [p for p in module.parameters() if p.requires_grad]
        self.sums = [torch.zeros_like(p) for p in self.trained]
        self.hooks: Any = None
        if hooked:
            # Strict mode would refuse buffers, which are harmless in frozen layers.
            self.hooks = _opacus("grad_sample").GradSampleModule(
                module, loss_reduction="sum", strict=False
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.hooks:
            self.hooks._close()

    def add(self, losses: Tensor) -> None:
        """Adds the clipped gradients of examples, given their losses [B], to the sum.

        Raises:
            ValueError: the losses are not one per example, or were not computed in training mode.
        """
        if losses.ndim != 1:
            raise ValueError(f"expected one loss per example [B], not {list(losses.shape)}")
        if not len(losses):
            return
        gradients = self.per_example(losses)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients]).norm(dim=0)
        factors = (self.clip / norms.clamp(min=torch.finfo(norms.dtype).tiny)).clamp(max=1)
        for total, gradient in zip(self.sums, gradients, strict=True):
            total += torch.einsum("b,b...->...", factors, gradient)

    def per_example(self, losses: Tensor) -> list[Tensor]:
        """[B, …] ∂loss_b/∂parameter for every trained parameter, unclipped."""
        if not self.hooks:
            per_loss = [
                torch.autograd.grad(loss, self.trained, retain_graph=True, materialize_grads=True)
                for loss in losses
            ]
            return [torch.stack(of_parameter) for of_parameter in zip(*per_loss, strict=True)]
        with warnings.catch_warnings():
            # torch warns that the input of the first trained layer has no gradient, which is intended.
            warnings.filterwarnings("ignore", "Full backward hook is firing", UserWarning)
            losses.sum().backward()  # type: ignore[no-untyped-call]
        gradients = []
        for parameter in self.trained:
            gradient = parameter.grad_sample  # type: ignore[attr-defined]
            if gradient is None and parameter.grad is None:  # the losses do not depend on it
                gradient = parameter.new_zeros(len(losses), *parameter.shape)
            if not isinstance(gradient, Tensor) or len(gradient) != len(losses):
                raise ValueError(
                    f"expected one gradient for each of {len(losses)} examples: the module must be in training "
                    "mode, each forward pass must have a backward pass, and the first dimension of each "
                    "layer must be the examples"
                )
            # Converted before clipping, which must bound the summed numbers; gradients may be bfloat16.
            gradients.append(gradient.float())
        self.hooks.zero_grad(set_to_none=True)
        return gradients

    def release(self) -> None:
        """Writes (sum + noise)/expected into `.grad`, and resets the sum."""
        for parameter, total in zip(self.trained, self.sums, strict=True):
            noise = self.rng.standard_normal(tuple(total.shape), dtype=np.float32)
            noise *= self.sigma * self.clip
            noisy = total + torch.from_numpy(noise).to(total)
            parameter.grad = noisy / self.expected
            total.zero_()


def _check_sampling(rate: float, steps: int) -> None:
    if not 0 < rate <= 1:
        raise LeakboardError(f"sampling rate: expected a number in (0, 1], not {rate}")
    if steps < 1:
        raise LeakboardError(f"steps: expected at least 1, not {steps}")


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppresses two harmless warnings: ln 0 if every example is in every batch, and orders of the RDP accountant."""
    with np.errstate(divide="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Optimal order is", UserWarning)
        yield


def _opacus(part: str) -> Any:
    """A module of Opacus, which takes a second to load."""
    try:
        return importlib.import_module(f"opacus.{part}")
    except ModuleNotFoundError:
        raise MissingExtra("opacus (DP-SGD)", "dp") from None
