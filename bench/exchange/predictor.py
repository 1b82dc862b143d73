"""Fine-tuned models as their customer uses them: the interface `Tuned`, and classifiers that run in batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from leakboard.bench.backbones import Ragged, Tokens, by_length

if TYPE_CHECKING:
    import numpy as np


class Tuned(ABC):
    """A fine-tuned model, which a defense returns."""

    def sends(self, tokens: Tokens, rng: np.random.Generator) -> Ragged | None:
        """Vectors that the customer's side would now send for public texts; nothing is recorded.

        Args:
            rng: of the mechanism's noise.

        Returns:
            One vector per token, or one per text as sequences of length 1; None if training did not change them.
        """
        return None

    def alone(self, tokens: Tokens) -> Tensor | None:
        """Class scores [n, C] of the customer's own part, without the vendor; None if it cannot predict."""
        return None

    def per_token(self, tokens: Tokens, split: str) -> tuple[Ragged, Ragged]:
        """For a language model: −ln p of each token of the texts, and True where it was predicted.

        The first token of each text is not predicted and has 0 and False.
        """
        raise TypeError("on texts without labels a defense returns a model that predicts tokens")

    def next_words(self, tokens: Tokens, rows: Tensor, split: str) -> Tensor:
        """For a language model: [n] the likeliest next token of each of n texts, the examples `rows` of `split`."""
        raise TypeError("on texts without labels a defense returns a model that predicts tokens")

    @abstractmethod
    def predict(self, tokens: Tokens, split: str) -> Tensor:
        """Class scores [n, C] for the examples of `split`; what this sends must go over the wire."""


class Predictor(Tuned):
    """A classifier that runs in batches of similar length, in evaluation mode.

    Args:
        score: function (tokens, rows, split) → class scores [B, C].
        networks: set to evaluation mode.
    """

    def __init__(
        self, score: Callable[[Tokens, Tensor, str], Tensor], *networks: nn.Module
    ) -> None:
        self.score = score
        for network in networks:
            network.eval()

    @torch.inference_mode()
    def predict(self, tokens: Tokens, split: str) -> Tensor:
        out: Tensor | None = None
        for rows in by_length(tokens.lengths):
            scores = self.score(tokens.take(rows), rows, split).float().cpu()
            out = scores.new_zeros(len(tokens), scores.shape[1]) if out is None else out
            out[rows] = scores
        assert out is not None, "no example to predict"
        return out
