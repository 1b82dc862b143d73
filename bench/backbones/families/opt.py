"""OPT: learned absolute positions, causal attention, a final norm in all sizes but one."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn
from transformers.masking_utils import create_causal_mask

from leakboard.bench.backbones.cache_argument import cache_argument
from leakboard.bench.backbones.family import Family
from leakboard.bench.backbones.prefix import Prefix


class OPT(Family):
    model_types: ClassVar[tuple[str, ...]] = ("opt",)
    lora_targets: ClassVar[tuple[str, ...]] = ("q_proj", "v_proj")
    loader: ClassVar[str] = "AutoModelForCausalLM"

    def embeddings(self, model: Any) -> nn.Embedding:
        return cast(nn.Embedding, model.decoder.embed_tokens)

    def stack(self, model: Any) -> nn.ModuleList:
        return cast(nn.ModuleList, model.decoder.layers)

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        positions = torch.arange(h.shape[1], device=h.device)[None]
        return h + cast(Tensor, model.decoder.embed_positions(mask, 0, position_ids=positions))

    def through(
        self,
        model: Any,
        x: Tensor,
        mask: Tensor,
        first: int,
        last: int,
        prefix: Prefix | None = None,
    ) -> Tensor:
        seen = create_causal_mask(model.config, x, mask, **cache_argument(None))
        for block in self.stack(model)[first:last]:
            x = block(x, attention_mask=seen)
        return x

    def leave(self, model: Any, x: Tensor) -> Tensor:
        norm = model.decoder.final_layer_norm
        return x if norm is None else cast(Tensor, norm(x))
