"""BERT: word embeddings, then position and type embeddings, then a stack of blocks."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from torch import Tensor, nn
from transformers.masking_utils import create_bidirectional_mask

from bench.backbones.family import Family


class Bert(Family):
    model_types: ClassVar[tuple[str, ...]] = ("bert",)
    lora_targets: ClassVar[tuple[str, ...]] = ("query", "value")

    def embeddings(self, model: Any) -> nn.Embedding:
        return cast(nn.Embedding, model.embeddings.word_embeddings)

    def stack(self, model: Any) -> nn.ModuleList:
        return cast(nn.ModuleList, model.encoder.layer)

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        return cast(Tensor, model.embeddings(inputs_embeds=h, token_type_ids=types))

    def through(self, model: Any, x: Tensor, mask: Tensor, first: int, last: int) -> Tensor:
        seen = create_bidirectional_mask(model.config, x, mask)
        for block in self.stack(model)[first:last]:
            x = block(x, seen)
        return x
