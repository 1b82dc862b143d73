"""Continuous relaxations of words for optimisation: soft choices among words, and free vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, normalize

TEMPERATURE = 0.05
"""Temperature of the relaxed choice of a word; public settings are between this value and 0.2."""
FLOOR = -5.0
"""Smallest initial logit relative to the best; at this temperature, such a word has no weight."""


class Choice(ABC):
    """Relaxed choice of one word for each of t positions.

    Attributes:
        free: [t, ·] optimised variables; a leaf tensor that requires gradients.
        rows: word embeddings E [V, d].
        optimiser: Adam over `free`.
    """

    def __init__(self, free: Tensor, rows: Tensor, rate: float) -> None:
        self.free, self.rows = free.requires_grad_(), rows
        self.optimiser = torch.optim.Adam([self.free], lr=rate)

    @abstractmethod
    def vectors(self) -> Tensor:
        """[t, d] relaxed embeddings, differentiable in `free`."""

    @abstractmethod
    def words(self) -> Tensor:
        """[t] the nearest words."""

    def step(self, squares: Callable[[Tensor], Tensor]) -> None:
        """One step of Adam down a sum of squared distances, a function of the embeddings."""
        (self.free.grad,) = torch.autograd.grad(squares(self.vectors()).sum(), self.free)
        self.optimiser.step()

    def keep(self, at: Tensor) -> None:
        """Drops all positions outside of the mask [t], with their state in Adam."""
        state = self.optimiser.state.pop(self.free, {})
        self.free = self.free.detach()[at].requires_grad_()
        self.optimiser.param_groups[0]["params"] = [self.free]
        if state:
            remaining = {name: value[at] if value.dim() else value for name, value in state.items()}
            self.optimiser.state[self.free] = remaining


class Logits(Choice):
    """A soft choice: words have weights softmax(free / temperature), as in Song & Raghunathan (2020).

    Args:
        likely: [t, R] initial log-likelihood of the words.
        among: [t, R] candidate words; None for all words.
    """

    def __init__(
        self, likely: Tensor, rows: Tensor, rate: float, among: Tensor | None = None
    ) -> None:
        below = likely - likely.amax(1, keepdim=True)
        super().__init__((below * TEMPERATURE).clamp(min=FLOOR), rows, rate)
        self.among = among

    def vectors(self) -> Tensor:
        weights = (self.free / TEMPERATURE).softmax(1)
        if self.among is None:
            return weights @ self.rows
        return embedding_bag(self.among, self.rows, per_sample_weights=weights, mode="sum")

    def words(self) -> Tensor:
        best = self.free.argmax(1)
        return best if self.among is None else self.among.gather(1, best[:, None])[:, 0]

    def keep(self, at: Tensor) -> None:
        super().keep(at)
        if self.among is not None:
            self.among = self.among[at]


class Vectors(Choice):
    """Free vectors. `rate` is in units of the spread of E, which differs a hundredfold between models.

    Args:
        start: [t, d] initial vectors.
    """

    def __init__(self, start: Tensor, rows: Tensor, rate: float) -> None:
        super().__init__(start.clone(), rows, rate * float(rows.std()))

    def vectors(self) -> Tensor:
        return self.free

    def words(self) -> Tensor:
        # By angle, since a normalisation after the embeddings hides the length of a vector from the search.
        return (normalize(self.free.detach()) @ normalize(self.rows).T).argmax(1)
