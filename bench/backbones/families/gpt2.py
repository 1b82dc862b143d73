"""GPT-2: absolute positions, causal attention, a final norm."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import torch
from torch import Tensor
from transformers.masking_utils import create_causal_mask

from leakboard.bench.backbones.cache_argument import cache_argument
from leakboard.bench.backbones.family import Family
from leakboard.bench.backbones.prefix import MaybePrefix


class GPT2(Family):
    model_types: ClassVar[tuple[str, ...]] = ("gpt2",)
    embeddings_path: ClassVar[str] = "wte"
    stack_path: ClassVar[str] = "h"
    norm_path: ClassVar[str] = "ln_f"
    lora_targets: ClassVar[tuple[str, ...]] = ("c_attn",)
    """Queries, keys and values in one layer."""
    transposed: ClassVar[bool] = True
    loader: ClassVar[str] = "AutoModelForCausalLM"

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        positions = torch.arange(h.shape[1], device=h.device)
        return cast(Tensor, model.drop(h + model.wpe(positions)))

    def through(
        self, model: Any, x: Tensor, mask: Tensor, first: int, last: int, prefix: MaybePrefix = None
    ) -> Tensor:
        seen = create_causal_mask(model.config, x, mask, **cache_argument(None))
        for block in self.stack(model)[first:last]:
            x = block(x, attention_mask=seen)
        return x
