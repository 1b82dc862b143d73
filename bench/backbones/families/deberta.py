"""DeBERTa v2 and v3: attention by relative positions, and a convolution parallel to the first block."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from torch import Tensor

from leakboard.bench.backbones.families.bert import Bert
from leakboard.bench.backbones.prefix import MaybePrefix, pass_block


class Deberta(Bert):
    model_types: ClassVar[tuple[str, ...]] = ("deberta-v2",)
    lora_targets: ClassVar[tuple[str, ...]] = ("query_proj", "value_proj")

    narrow_embeddings: ClassVar[bool] = True

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        out: Tensor = model.embeddings(inputs_embeds=h, token_type_ids=types, mask=mask)
        # Hidden states stay in float32 under autocast, as without the projection.
        return out.to(h.dtype)

    def through(
        self, model: Any, x: Tensor, mask: Tensor, first: int, last: int, prefix: MaybePrefix = None
    ) -> Tensor:
        encoder, entered, numbers = model.encoder, x, mask.long()
        seen = encoder.get_attention_mask((mask if prefix is None else prefix.widened(mask)).long())
        distances = encoder.get_rel_pos(x if prefix is None else prefix.in_front(x))
        embedded = encoder.get_rel_embedding()
        for i in range(first, last):
            block, own = encoder.layer[i], encoder.layer[i].attention.self

            def call(wide: Tensor, block: Any = block) -> Tensor:
                return cast(
                    Tensor, block(wide, seen, relative_pos=distances, rel_embeddings=embedded)[0]
                )

            x = pass_block(call, x, prefix, own.key_proj, own.value_proj, i)
            if i == 0 and encoder.conv is not None:
                x = encoder.conv(entered, x, numbers)
        return x

    def positions(self, model: Any) -> int | None:
        return super().positions(model) if model.config.position_biased_input else None
