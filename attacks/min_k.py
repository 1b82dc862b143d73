"""min-k: membership inference from the least likely tokens of a text (Min-K%++)."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from leakboard.bench.attacking import MembershipAttack
from leakboard.bench.backbones import LanguageModel, Tokens, chunks
from leakboard.bench.exchange import Trainee
from leakboard.bench.methods import Knowledge, Silent, Source


class MinK(MembershipAttack):
    """Min-K%++: the mean standardised log-probability of the least likely tokens of a text.

    ln p of a token is standardised by the mean and standard deviation of ln p over the model's prediction. So an
    unlikely word counts less where the prediction is uncertain.
    """

    name: ClassVar[str] = "min-k"
    source: ClassVar[Source] = Source(
        "Min-K%++: Improved Baseline for Detecting Pre-Training Data from Large Language Models "
        "(Zhang et al. 2024)",
        "equations 3 and 4",
        "https://arxiv.org/abs/2404.02936",
    )

    k: float = Field(0.2, gt=0, le=1)
    """Share of the tokens of a text that count: the least likely ones, at least one."""

    def scores(self, released: Trainee, knowledge: Knowledge) -> NDArray[np.float64]:
        if knowledge.classes:
            raise Silent("it reads the probabilities of all tokens, which a classifier has none of")

        def measured(network: Trainee, tokens: Tokens, labels: Tensor) -> Tensor:
            assert isinstance(network, LanguageModel)
            standardised_scores, mask = standardised_log_probs(network, tokens)
            return torch.stack(
                [
                    self.least(of_text[is_token])
                    for of_text, is_token in zip(standardised_scores, mask, strict=True)
                ]
            )

        return self.measure_candidates(measured, released, knowledge.candidates)

    def least(self, scores: Tensor) -> Tensor:
        """The mean of the smallest share k of the values [L] of a text; 0 if it has none."""
        if not len(scores):
            return scores.new_zeros(())
        # The released code rounds down, which leaves no token of a text of four.
        return scores.topk(math.ceil(self.k * len(scores)), largest=False).values.mean()


def standardised_log_probs(network: LanguageModel, tokens: Tokens) -> tuple[Tensor, Tensor]:
    """(ln p − μ)/σ of every token but the first of each example, and a mask; two of [B, L − 1].

    μ and σ are the mean and the standard deviation of ln p(z) over z ~ p at that position.
    """
    hidden = network.hidden(tokens)[:, :-1]
    ids = tokens.ids.padded().to(hidden.device)[:, 1:]
    mask = tokens.ids.mask().to(hidden.device)[:, 1:]
    truth, values = ids[mask].long(), torch.zeros(int(mask.sum()), device=hidden.device)
    for places, scores in chunks(hidden[mask], network.head):
        values[places] = standardised(scores.log_softmax(-1), truth[places])
    return torch.zeros_like(mask, dtype=torch.float32).masked_scatter(mask, values), mask


def standardised(logs: Tensor, truth: Tensor) -> Tensor:
    """[T] (ln p − μ)/σ of the tokens `truth` [T], from ln p of all tokens [T, V]."""
    own = logs.gather(-1, truth[:, None])[:, 0]
    p = logs.exp()
    mean = (p * logs).sum(-1)
    variance = (p * (logs - mean[:, None]) ** 2).sum(-1)
    # A prediction may be so certain that its standard deviation is 0 in float32.
    return (own - mean) / variance.clamp(min=1e-12).sqrt()
