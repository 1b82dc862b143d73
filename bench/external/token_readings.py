"""Log-probabilities of all tokens of some texts under one model, for all membership attacks together."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from leakboard.attacks.min_k import standardised
from leakboard.bench.backbones import Backbone, Ragged, Tokens, by_length, chunks
from leakboard.bench.contracts import Progress, quietly

BATCH = 32
"""Texts in one pass."""


@dataclass(frozen=True)
class TokenReadings:
    """Numbers of every token but the first of each text.

    Attributes:
        losses: −ln p of each token.
        hits: whether each token is the likeliest one.
        standardised: (ln p − μ)/σ of each token, as Min-K%++ reads it.
    """

    losses: Ragged
    hits: Ragged
    standardised: Ragged

    def means(self) -> Tensor:
        """[n] the mean loss of each text; 0 of a text with a single token."""
        return self.totals() / self.losses.lengths.clamp(min=1)

    def totals(self) -> Tensor:
        """[n] −ln p of each text."""
        return self.losses.padded().double().sum(1)


@torch.inference_mode()
def read_tokens(model: Backbone, tokens: Tokens, progress: Progress = quietly) -> TokenReadings:
    """Read all texts in one batched pass through a causal language model."""
    head, words = model.output_layer(), model.family.embeddings(model.model)
    parts, batches = [], by_length(tokens.lengths, BATCH)
    for rows in progress(f"scoring texts by {model.name}", batches, len(batches)):
        own = tokens.take(rows)
        h = own.ids.with_values(words(own.ids.values.to(model.device)))
        types = own.ids.with_values(own.types.to(model.device)).padded()
        hidden = model.family.top(model.model, h.padded(), h.mask(), types, 0)[:, :-1]
        mask = own.ids.mask()[:, 1:]
        truth = own.ids.padded()[:, 1:][mask].to(model.device)
        found = torch.zeros(len(truth), 3, device=model.device)
        for here, scores in chunks(hidden[mask.to(model.device)], head):
            logs = scores.log_softmax(-1)
            likelihood = logs.gather(-1, truth[here, None])[:, 0]
            found[here, 0] = -likelihood
            found[here, 1] = (likelihood == logs.amax(-1)).float()
            found[here, 2] = standardised(logs, truth[here])
        parts.append(Ragged(found.cpu(), own.lengths - 1))
    whole = Ragged.joined(parts).take(torch.cat(batches).argsort())
    loss, hit, standard = whole.values.unbind(1)
    return TokenReadings(
        whole.with_values(loss), whole.with_values(hit > 0), whole.with_values(standard)
    )
