"""What a defense returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from bench.backbones import Tokens


class Tuned(ABC):
    """A fine-tuned predictor, used the way the customer would use it."""

    @abstractmethod
    def predict(self, tokens: Tokens, split: str) -> Tensor:
        """Class scores [n, C] for the examples of `split`; whatever this sends goes over the wire."""
