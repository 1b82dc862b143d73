"""DistilBERT: BERT without segments, with half of the blocks."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, cast

from torch import Tensor

from leakboard.bench.backbones.families.bert import behind
from leakboard.bench.backbones.family import Family
from leakboard.bench.backbones.prefix import MaybePrefix, pass_block


class DistilBert(Family):
    model_types: ClassVar[tuple[str, ...]] = ("distilbert",)
    embeddings_path: ClassVar[str] = "embeddings.word_embeddings"
    stack_path: ClassVar[str] = "transformer.layer"
    lora_targets: ClassVar[tuple[str, ...]] = ("q_lin", "v_lin")

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        return cast(Tensor, model.embeddings(None, inputs_embeds=h))

    def through(
        self, model: Any, x: Tensor, mask: Tensor, first: int, last: int, prefix: MaybePrefix = None
    ) -> Tensor:
        seen = behind(model.config, x, mask, prefix)
        for i in range(first, last):
            block: Any = self.stack(model)[i]
            own = block.attention
            x = pass_block(partial(block, attention_mask=seen), x, prefix, own.k_lin, own.v_lin, i)
        return x

    def heads(self, model: Any) -> tuple[int, int]:
        return model.config.n_heads, model.config.dim // model.config.n_heads
