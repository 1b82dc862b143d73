"""Trainable causal language models, and their loss per token."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear

from leakboard.bench.backbones import lora, next_token
from leakboard.bench.backbones.backbone import Backbone, bos_prefix
from leakboard.bench.backbones.labelling import NO_LABEL, next_tokens
from leakboard.bench.backbones.ragged import Ragged, Tokens, by_length
from leakboard.bench.backbones.tokeniser_trial import naming_panics
from leakboard.bench.contracts import TrainSettings
from leakboard.bench.tasks import Span


class LanguageModel(nn.Module):
    """A trainable copy of a causal backbone: LoRA in the blocks, or all weights.

    Raises:
        LeakboardError: the backbone predicts no tokens.
    """

    def __init__(self, backbone: Backbone, settings: TrainSettings) -> None:
        super().__init__()
        head = backbone.output_layer()
        self.family = backbone.family
        self.encoder = copy.deepcopy(backbone.model)
        self.own_head = None if backbone.tied else nn.Parameter(head.clone())
        if settings.tune == "full":
            self.requires_grad_()
        else:
            self.requires_grad_(False)
            lora.inject(self.family.stack(self.encoder), self.family, settings)
        self.to(backbone.device)

    @property
    def head(self) -> Tensor:
        """[V, d] output layer."""
        if self.own_head is not None:
            return self.own_head
        return self.family.embeddings(self.encoder).weight

    def trained(self) -> list[nn.Parameter]:
        return [p for p in self.parameters() if p.requires_grad]

    def forward(self, tokens: Tokens) -> Tensor:
        """Logits [B, L, V] of the next token at each place; undefined after the end."""
        return linear(self.hidden(tokens), self.head)

    def hidden(self, tokens: Tokens) -> Tensor:
        """Last hidden states [B, L, d]; undefined after the end."""
        words = self.family.embeddings(self.encoder)
        h = tokens.ids.with_values(words(tokens.ids.values.to(words.weight.device)))
        types = tokens.ids.with_values(tokens.types.to(words.weight.device)).padded()
        return self.family.top(self.encoder, h.padded(), h.mask(), types, 0)

    def losses(self, tokens: Tokens) -> tuple[Tensor, Tensor, Tensor]:
        """Three [B, L − 1]: −ln p of every token but the first, True where it is the likeliest, and a mask.

        The mask is True where there is a label (`next_tokens`).
        """
        hidden, head = self.hidden(tokens), self.head
        labels = tokens.ids.with_values(next_tokens(tokens)).padded(NO_LABEL)
        labels = labels.to(hidden.device)[:, :-1]
        mask = labels != NO_LABEL
        if next_token.fits(hidden[..., 0].numel(), head):
            logits = linear(hidden, head)[:, :-1].float()
            lost = cross_entropy(
                logits.flatten(0, 1), labels.flatten(), reduction="none", ignore_index=NO_LABEL
            )
            return lost.view(labels.shape), logits.argmax(-1) == labels, mask
        # With a long vocabulary, scores are computed in parts and only at places with a label.
        loss, right = next_token.losses(hidden[:, :-1][mask], head, labels[mask].long())
        spread = torch.zeros(mask.shape, device=mask.device)
        return spread.masked_scatter(mask, loss), mask.masked_scatter(mask, right), mask


@torch.inference_mode()
def per_token(network: LanguageModel, tokens: Tokens) -> tuple[Ragged, Ragged]:
    """−ln p of every token, and True where it is the likeliest; 0 and False for the first of an example."""
    network.eval()
    parts, batches = [], by_length(tokens.lengths, 32)
    for rows in batches:
        batch = tokens.take(rows)
        loss, hits, _ = network.losses(batch)
        mask = batch.ids.mask()
        shifted = torch.zeros(*mask.shape, 2)
        shifted[:, 1:, 0], shifted[:, 1:, 1] = loss.cpu(), hits.float().cpu()
        parts.append(Ragged(shifted[mask.cpu()], batch.lengths))
    both = Ragged.joined(parts).take(torch.cat(batches).argsort())
    return both.with_values(both.values[:, 0]), both.with_values(both.values[:, 1] > 0)


def offsets(backbone: Backbone, texts: Sequence[str], length: int) -> list[NDArray[np.int64]]:
    """For each text, [L, 2] start and end of the characters of its first `length` tokens.

    BOS, which `Backbone.encode` prepends for language modelling, covers no character.
    """
    with naming_panics(backbone.name):
        out = backbone.tokenizer(
            list(texts), truncation=True, max_length=length, return_offsets_mapping=True
        )
    return [
        np.array([(0, 0)] * len(bos_prefix(backbone.tokenizer, ids)) + own, np.int64)[:length]
        for own, ids in zip(out["offset_mapping"], out["input_ids"], strict=True)
    ]


def covered_tokens(offsets: NDArray[np.int64], spans: Sequence[Span]) -> NDArray[np.bool_]:
    """[L] True for tokens that overlap one of the spans."""
    covered = np.zeros(len(offsets), bool)
    for span in spans:
        covered |= (offsets[:, 0] < span.end) & (offsets[:, 1] > span.start)
    return covered
