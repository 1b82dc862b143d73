"""Llama: rotary positions inside each block, causal attention, a final norm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn
from transformers.masking_utils import create_causal_mask, create_sliding_window_causal_mask

from leakboard.bench.backbones.cache_argument import cache_argument
from leakboard.bench.backbones.family import Family
from leakboard.bench.backbones.prefix import Prefix

FULL, WINDOW = "full_attention", "sliding_attention"
"""Whether a block attends to all that stands before a token or to the nearest part of it."""


class Llama(Family):
    """Also for its descendants, whose blocks may differ in how far they attend."""

    model_types: ClassVar[tuple[str, ...]] = ("llama",)
    lora_targets: ClassVar[tuple[str, ...]] = ("q_proj", "v_proj")
    loader: ClassVar[str] = "AutoModelForCausalLM"

    def embeddings(self, model: Any) -> nn.Embedding:
        return cast(nn.Embedding, model.embed_tokens)

    def stack(self, model: Any) -> nn.ModuleList:
        return cast(nn.ModuleList, model.layers)

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        return h

    def reaches(self, model: Any) -> Sequence[str]:
        """`FULL` or `WINDOW` for each block."""
        return [FULL] * self.blocks(model)

    def angles(self, model: Any, x: Tensor, positions: Tensor, reach: str) -> Any:
        """What turns queries and keys of the blocks of one reach."""
        return model.rotary_emb(x, position_ids=positions)

    def through(
        self,
        model: Any,
        x: Tensor,
        mask: Tensor,
        first: int,
        last: int,
        prefix: Prefix | None = None,
    ) -> Tensor:
        reaches = self.reaches(model)[first:last]
        masked = {FULL: create_causal_mask, WINDOW: create_sliding_window_causal_mask}
        seen = {r: masked[r](model.config, x, mask, **cache_argument(None)) for r in set(reaches)}
        positions = torch.arange(x.shape[1], device=x.device)[None]
        angles = {reach: self.angles(model, x, positions, reach) for reach in set(reaches)}
        for block, reach in zip(self.stack(model)[first:last], reaches, strict=True):
            x = block(
                x,
                attention_mask=seen[reach],
                position_ids=positions,
                position_embeddings=angles[reach],
            )
        return x

    def leave(self, model: Any, x: Tensor) -> Tensor:
        return cast(Tensor, model.norm(x))
