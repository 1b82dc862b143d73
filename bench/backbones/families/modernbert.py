"""ModernBERT: a norm after the word embeddings, rotary positions, windowed attention in most blocks."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import torch
from torch import Tensor
from transformers.masking_utils import (
    create_bidirectional_mask,
    create_bidirectional_sliding_window_mask,
)

from leakboard.bench.backbones.family import Family
from leakboard.bench.backbones.prefix import MaybePrefix


class ModernBert(Family):
    model_types: ClassVar[tuple[str, ...]] = ("modernbert",)
    embeddings_path: ClassVar[str] = "embeddings.tok_embeddings"
    stack_path: ClassVar[str] = "layers"
    norm_path: ClassVar[str] = "final_norm"
    lora_targets: ClassVar[tuple[str, ...]] = ("Wqkv",)
    """Queries, keys and values in one layer."""

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        return cast(Tensor, model.embeddings(inputs_embeds=h))

    def through(
        self, model: Any, x: Tensor, mask: Tensor, first: int, last: int, prefix: MaybePrefix = None
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
