"""DeBERTa v2 and v3: attention by relative positions, and a convolution beside the first block."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from bench.backbones.families.bert import Bert


class Deberta(Bert):
    model_types: ClassVar[tuple[str, ...]] = ("deberta-v2",)
    lora_targets: ClassVar[tuple[str, ...]] = ("query_proj", "value_proj")

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        out: Tensor = model.embeddings(inputs_embeds=h, token_type_ids=types, mask=mask)
        return out

    def through(self, model: Any, x: Tensor, mask: Tensor, first: int, last: int) -> Tensor:
        encoder, entered, numbers = model.encoder, x, mask.long()
        seen = encoder.get_attention_mask(numbers)
        distances = encoder.get_rel_pos(x)
        embedded = encoder.get_rel_embedding()
        for i in range(first, last):
            x, _ = encoder.layer[i](x, seen, relative_pos=distances, rel_embeddings=embedded)
            if i == 0 and encoder.conv is not None:
                x = encoder.conv(entered, x, numbers)
        return x
