"""The interface of fine-tuned models. It imports no torch, so that listing methods is quick."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

    from leakboard.bench.backbones import Ragged, Tokens


class Tuned(ABC):
    """A fine-tuned model, which a defense returns."""

    def sends(self, tokens: Tokens, rng: Generator) -> Ragged | None:
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
