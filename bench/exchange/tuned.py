"""What a defense returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from leakboard.bench.backbones import Ragged, Tokens


class Tuned(ABC):
    """A fine-tuned predictor, used the way the customer would use it."""

    def sends(self, tokens: Tokens, rng: np.random.Generator) -> Ragged | None:
        """What the customer's side, as it is now, would send for public texts; nothing is recorded.

        Args:
            rng: of the mechanism's noise.

        Returns:
            One vector per text, as sequences of length 1; None where that is what it sent before training.
        """
        return None

    def alone(self, tokens: Tokens) -> Tensor | None:
        """Class scores [n, C] by what the customer holds when the vendor has gone; None: by nothing."""
        return None

    def per_token(self, tokens: Tokens, split: str) -> tuple[Ragged, Ragged]:
        """Of a language model −ln p of every token of texts of `split`, and whether it was predicted; 0 and
        False where nothing is to be predicted, as for the first of each text."""
        raise TypeError("on texts without labels a defense returns a model that predicts tokens")

    def next_words(self, tokens: Tokens, rows: Tensor, split: str) -> Tensor:
        """Of a language model [n] the likeliest token behind each of n texts, the examples `rows` of `split`."""
        raise TypeError("on texts without labels a defense returns a model that predicts tokens")

    @abstractmethod
    def predict(self, tokens: Tokens, split: str) -> Tensor:
        """Class scores [n, C] for the examples of `split`; whatever this sends goes over the wire."""
