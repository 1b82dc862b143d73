"""Llama: rotary positions inside each block, causal attention, a final norm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from transformers.masking_utils import create_causal_mask, create_sliding_window_causal_mask

from leakboard.bench.backbones.cache_argument import cache_argument
from leakboard.bench.backbones.family import Family
from leakboard.bench.backbones.prefix import MaybePrefix

FULL, WINDOW = "full_attention", "sliding_attention"
"""Attention of a block to all earlier tokens, or to a window of them."""


class Llama(Family):
    """Base class of families whose blocks may have windowed attention."""

    model_types: ClassVar[tuple[str, ...]] = ("llama",)
    embeddings_path: ClassVar[str] = "embed_tokens"
    stack_path: ClassVar[str] = "layers"
    norm_path: ClassVar[str] = "norm"
    lora_targets: ClassVar[tuple[str, ...]] = ("q_proj", "v_proj")
    loader: ClassVar[str] = "AutoModelForCausalLM"

    def reaches(self, model: Any) -> Sequence[str]:
        """`FULL` or `WINDOW` for each block."""
        return [FULL] * self.blocks(model)

    def angles(self, model: Any, x: Tensor, positions: Tensor, reach: str) -> Any:
        """Rotary embeddings of the blocks with one kind of attention."""
        return model.rotary_emb(x, position_ids=positions)

    def through(
        self, model: Any, x: Tensor, mask: Tensor, first: int, last: int, prefix: MaybePrefix = None
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
