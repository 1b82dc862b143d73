"""Trainable copy of a backbone with a classification head or a next-token head."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from leakboard.bench.backbones import lora
from leakboard.bench.backbones.backbone import Backbone
from leakboard.bench.backbones.ragged import Ragged, Tokens
from leakboard.bench.contracts import TrainSettings


class Network(nn.Module):
    """A trainable copy of the backbone: LoRA in the blocks, and a linear head on the mean.

    Without classes it predicts the next token: its head is the frozen public output layer on the vector of each token.

    Args:
        cut: last block of `bottom`.
        classes: number of classes; 0 for language modelling.
        adapted: blocks with LoRA, as a slice or as indices; ignored under `tune: head`. All other weights of the
            encoder are frozen.

    Attributes:
        per_token: True if it predicts the next token; `features` are then per token.

    Raises:
        LeakboardError: the backbone predicts no tokens, and there are no classes.
    """

    def __init__(
        self,
        backbone: Backbone,
        cut: int,
        classes: int,
        settings: TrainSettings,
        adapted: slice | Sequence[int],
    ) -> None:
        super().__init__()
        # Initialised before the adapters, so that the head is the same with and without them.
        head = nn.Linear(backbone.width, classes) if classes else _output_layer(backbone)
        self.per_token = not classes
        self.family = backbone.family
        self.cut = cut
        self.encoder = copy.deepcopy(backbone.model)
        stack = self.family.stack(self.encoder)
        chosen = stack[adapted] if isinstance(adapted, slice) else [stack[i] for i in adapted]
        self._unchanged = None if cut else backbone
        if settings.tune != "head" and len(chosen):
            lora.inject(nn.ModuleList(chosen), self.family, settings)
            self._unchanged = None
        self.head = head
        self.to(backbone.device)

    @property
    def embeddings(self) -> nn.Embedding:
        return self.family.embeddings(self.encoder)

    def trained(self) -> list[nn.Parameter]:
        return [p for p in self.parameters() if p.requires_grad]

    def bottom(self, vectors: Ragged, types: Tensor) -> Ragged:
        """The customer's part: word embeddings [T, d] → representations at the cut [T, d]."""
        return self.family.bottom_of(self.encoder, vectors, types, self.cut)

    def vectors(self, tokens: Tokens) -> Tensor:
        """The `features` of token ids.

        While nothing below the head is trained, they are those of the public model in evaluation mode, which all
        cells of a process share.
        """
        device, public = self.embeddings.weight.device, self._unchanged
        is_exact = not self.training and not torch.is_autocast_enabled(device.type)
        if public is not None and is_exact and not self.per_token and not self._trains_encoder:
            return public.pooled(tokens)
        words = self.embeddings(tokens.ids.values.to(device))
        return self.features(tokens.ids.with_values(words), tokens.types)

    @property
    def _trains_encoder(self) -> bool:
        return any(p.requires_grad for p in self.encoder.parameters())

    def features(self, h: Ragged, types: Tensor) -> Tensor:
        """Mean vectors over tokens [B, d], as MiniLM was trained; or vectors of all tokens [T, d] if `per_token`.

        Args:
            h: representations at the cut, [T, d] for B examples.
            types: [T] segment of each token.
        """
        if self.per_token:
            return self.family.hidden(self.encoder, h, types, self.cut)
        return self.family.pooled(self.encoder, h, types, self.cut)

    def forward(self, h: Ragged, types: Tensor) -> Tensor:
        """Class scores [B, C] of representations; autocast ends before the head, which is all trained."""
        return self.scores(self.features(h, types))

    def scores(self, features: Tensor) -> Tensor:
        """Class scores [B, C] in float32 of `features` [B, d]."""
        with torch.autocast(features.device.type, enabled=False):
            scores: Tensor = self.head(features)
        return scores


def _output_layer(backbone: Backbone) -> nn.Linear:
    """The frozen output layer, which shares memory with the public model."""
    weight = backbone.output_layer()
    head = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    head.weight = nn.Parameter(weight, requires_grad=False)
    return head
