"""MPNet: BERT without segments, and one bias for relative positions that all blocks share."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from torch import Tensor

from leakboard.bench.backbones.families.bert import Bert, behind
from leakboard.bench.backbones.prefix import MaybePrefix, pass_block


class MPNet(Bert):
    model_types: ClassVar[tuple[str, ...]] = ("mpnet",)
    lora_targets: ClassVar[tuple[str, ...]] = ("q", "v")

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        return cast(Tensor, model.embeddings(inputs_embeds=h))

    def through(
        self, model: Any, x: Tensor, mask: Tensor, first: int, last: int, prefix: MaybePrefix = None
    ) -> Tensor:
        seen = behind(model.config, x, mask, prefix)
        # The bias depends on the length only, so the vendor can compute it. A prefix precedes the first token.
        bias = model.encoder.compute_position_bias(x if prefix is None else prefix.in_front(x))
        for i in range(first, last):
            block: Any = self.stack(model)[i]

            def call(wide: Tensor, block: Any = block) -> Tensor:
                return cast(Tensor, block(wide, seen, bias)[0])

            x = pass_block(call, x, prefix, block.attention.attn.k, block.attention.attn.v, i)
        return x

    def positions(self, model: Any) -> int:
        # Position numbers start after the id of the padding.
        most: int = model.config.max_position_embeddings - model.embeddings.padding_idx - 1
        return most
