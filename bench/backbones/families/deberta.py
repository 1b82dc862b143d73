"""DeBERTa v2 and v3: attention by relative positions, and a convolution beside the first block."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from torch import Tensor

from leakboard.bench.backbones.families.bert import Bert
from leakboard.bench.backbones.prefix import Prefix


class Deberta(Bert):
    model_types: ClassVar[tuple[str, ...]] = ("deberta-v2",)
    lora_targets: ClassVar[tuple[str, ...]] = ("query_proj", "value_proj")

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        out: Tensor = model.embeddings(inputs_embeds=h, token_type_ids=types, mask=mask)
        return out

    def through(
        self,
        model: Any,
        x: Tensor,
        mask: Tensor,
        first: int,
        last: int,
        prefix: Prefix | None = None,
    ) -> Tensor:
        encoder, entered, numbers = model.encoder, x, mask.long()
        seen = encoder.get_attention_mask((prefix.widened(mask) if prefix else mask).long())
        distances = encoder.get_rel_pos(prefix.in_front(x) if prefix else x)
        embedded = encoder.get_rel_embedding()
        for i in range(first, last):
            x = _block(encoder.layer[i], x, i, prefix, seen, distances, embedded)
            if i == 0 and encoder.conv is not None:
                x = encoder.conv(entered, x, numbers)
        return x

    def positions(self, model: Any) -> int | None:
        return super().positions(model) if model.config.position_biased_input else None


def _block(
    block: Any, x: Tensor, number: int, prefix: Prefix | None, seen: Any, near: Any, embedded: Any
) -> Tensor:
    """One block; its attention asks no cache, so that a prefix takes the place of empty rows in front."""
    if prefix is None:
        return cast(Tensor, block(x, seen, relative_pos=near, rel_embeddings=embedded)[0])
    wide, attention = prefix.in_front(x), block.attention.self
    with prefix.written(wide, attention.key_proj, attention.value_proj, number):
        out = block(wide, seen, relative_pos=near, rel_embeddings=embedded)[0]
    return cast(Tensor, out[:, prefix.length :])
