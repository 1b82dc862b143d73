"""Classifiers as their customer uses them, in batches."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from leakboard.bench.backbones import Tokens, by_length
from leakboard.bench.exchange.tuned_model import Tuned


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
