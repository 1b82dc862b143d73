"""ModernBERT: a norm behind the word embeddings, rotary positions, most blocks attend within a window."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn
from transformers.masking_utils import (
    create_bidirectional_mask,
    create_bidirectional_sliding_window_mask,
)

from leakboard.bench.backbones.family import Family
from leakboard.bench.backbones.prefix import Prefix


class ModernBert(Family):
    model_types: ClassVar[tuple[str, ...]] = ("modernbert",)
    lora_targets: ClassVar[tuple[str, ...]] = ("Wqkv",)
    """Queries, keys and values in one layer."""

    def embeddings(self, model: Any) -> nn.Embedding:
        return cast(nn.Embedding, model.embeddings.tok_embeddings)

    def stack(self, model: Any) -> nn.ModuleList:
        return cast(nn.ModuleList, model.layers)

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        return cast(Tensor, model.embeddings(inputs_embeds=h))

    def through(
        self,
        model: Any,
        x: Tensor,
        mask: Tensor,
        first: int,
        last: int,
        prefix: Prefix | None = None,
    ) -> Tensor:
        seen = {
            "full_attention": create_bidirectional_mask(model.config, x, mask),
            "sliding_attention": create_bidirectional_sliding_window_mask(model.config, x, mask),
        }
        positions = torch.arange(x.shape[1], device=x.device)[None]
        angles = {reach: model.rotary_emb(x, positions, reach) for reach in seen}
        for block in self.stack(model)[first:last]:
            reach = cast(str, block.attention_type)
            x = block(x, attention_mask=seen[reach], position_embeddings=angles[reach])
        return x

    def leave(self, model: Any, x: Tensor) -> Tensor:
        return cast(Tensor, model.final_norm(x))
