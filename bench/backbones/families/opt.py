"""OPT: as GPT-2, with linear layers and other positions; one size has no final norm."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import torch
from torch import Tensor

from leakboard.bench.backbones.families.gpt2 import GPT2


class OPT(GPT2):
    model_types: ClassVar[tuple[str, ...]] = ("opt",)
    embeddings_path: ClassVar[str] = "decoder.embed_tokens"
    stack_path: ClassVar[str] = "decoder.layers"
    norm_path: ClassVar[str] = "decoder.final_layer_norm"
    lora_targets: ClassVar[tuple[str, ...]] = ("q_proj", "v_proj")
    transposed: ClassVar[bool] = False

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        positions = torch.arange(h.shape[1], device=h.device)[None]
        return h + cast(Tensor, model.decoder.embed_positions(mask, 0, position_ids=positions))
