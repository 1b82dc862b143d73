"""Falcon: rotary positions, or a bias that falls with distance (ALiBi), inside each block."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor
from transformers.masking_utils import create_causal_mask
from transformers.models.falcon.modeling_falcon import build_alibi_tensor

from leakboard.bench.backbones.cache_argument import cache_argument
from leakboard.bench.backbones.family import Family
from leakboard.bench.backbones.prefix import MaybePrefix


class Falcon(Family):
    model_types: ClassVar[tuple[str, ...]] = ("falcon",)
    embeddings_path: ClassVar[str] = "word_embeddings"
    stack_path: ClassVar[str] = "h"
    norm_path: ClassVar[str] = "ln_f"
    lora_targets: ClassVar[tuple[str, ...]] = ("query_key_value",)
    """Queries, keys and values in one layer."""
    loader: ClassVar[str] = "AutoModelForCausalLM"

    def through(
        self, model: Any, x: Tensor, mask: Tensor, first: int, last: int, prefix: MaybePrefix = None
    ) -> Tensor:
        positions = torch.arange(x.shape[1], device=x.device)[None]
        if model.config.alibi:
            bias, seen = _distances(model.config, x, mask)
        else:
            bias = None
            seen = create_causal_mask(model.config, x, mask, **cache_argument(None))
        angles = model.rotary_emb(x, position_ids=positions)
        for block in self.stack(model)[first:last]:
            x = block(
                x,
                alibi=bias,
                attention_mask=seen,
                position_ids=positions,
                position_embeddings=angles,
            )[0]
        return x


def _distances(config: Any, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Bias of each head [B, H, 1, L], and the same with masked positions [B, H, L, L]."""
    heads, (batch, length) = config.num_attention_heads, mask.shape
    bias = build_alibi_tensor(mask.long(), heads, dtype=x.dtype).view(batch, heads, 1, length)
    unseen = ~(mask.new_ones(length, length).tril() & mask[:, None, None])
    scaled = bias / (config.hidden_size // heads) ** 0.5
    return bias, scaled.masked_fill(unseen, torch.finfo(x.dtype).min)
