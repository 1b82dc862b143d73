"""Llama: rotary positions inside each block, causal attention, a final norm."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn
from transformers.masking_utils import create_causal_mask

from bench.backbones.family import Family


class Llama(Family):
    model_types: ClassVar[tuple[str, ...]] = ("llama",)
    lora_targets: ClassVar[tuple[str, ...]] = ("q_proj", "v_proj")
    loader: ClassVar[str] = "AutoModelForCausalLM"

    def embeddings(self, model: Any) -> nn.Embedding:
        return cast(nn.Embedding, model.embed_tokens)

    def stack(self, model: Any) -> nn.ModuleList:
        return cast(nn.ModuleList, model.layers)

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        return h

    def through(self, model: Any, x: Tensor, mask: Tensor, first: int, last: int) -> Tensor:
        seen = create_causal_mask(model.config, x, mask, past_key_values=None)
        positions = torch.arange(x.shape[1], device=x.device)[None]
        angles = model.rotary_emb(x, position_ids=positions)
        for block in self.stack(model)[first:last]:
            x = block(x, attention_mask=seen, position_ids=positions, position_embeddings=angles)
        return x

    def leave(self, model: Any, x: Tensor) -> Tensor:
        return cast(Tensor, model.norm(x))
