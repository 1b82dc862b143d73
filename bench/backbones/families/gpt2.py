"""GPT-2: absolute positions, causal attention, a final norm."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn
from transformers.masking_utils import create_causal_mask

from leakboard.bench.backbones.cache_argument import cache_argument
from leakboard.bench.backbones.family import Family
from leakboard.bench.backbones.prefix import Prefix


class GPT2(Family):
    model_types: ClassVar[tuple[str, ...]] = ("gpt2",)
    lora_targets: ClassVar[tuple[str, ...]] = ("c_attn",)
    """Queries, keys and values in one layer."""
    transposed: ClassVar[bool] = True
    loader: ClassVar[str] = "AutoModelForCausalLM"

    def embeddings(self, model: Any) -> nn.Embedding:
        return cast(nn.Embedding, model.wte)

    def stack(self, model: Any) -> nn.ModuleList:
        return cast(nn.ModuleList, model.h)

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        positions = torch.arange(h.shape[1], device=h.device)
        return cast(Tensor, model.drop(h + model.wpe(positions)))

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
        return cast(Tensor, model.ln_f(x))
