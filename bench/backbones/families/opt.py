"""OPT: GPT-2 with linear layers and positions of its own; a final norm in all sizes but one."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from leakboard.bench.backbones.families.gpt2 import GPT2


class OPT(GPT2):
    model_types: ClassVar[tuple[str, ...]] = ("opt",)
    lora_targets: ClassVar[tuple[str, ...]] = ("q_proj", "v_proj")
    transposed: ClassVar[bool] = False

    def embeddings(self, model: Any) -> nn.Embedding:
        return cast(nn.Embedding, model.decoder.embed_tokens)

    def stack(self, model: Any) -> nn.ModuleList:
        return cast(nn.ModuleList, model.decoder.layers)

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        positions = torch.arange(h.shape[1], device=h.device)[None]
        return h + cast(Tensor, model.decoder.embed_positions(mask, 0, position_ids=positions))

    def leave(self, model: Any, x: Tensor) -> Tensor:
        norm = model.decoder.final_layer_norm
        return x if norm is None else cast(Tensor, norm(x))
