"""DistilBERT: BERT without segments, with half of the blocks."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, cast

from torch import Tensor, nn

from leakboard.bench.backbones.families.bert import behind
from leakboard.bench.backbones.family import Family
from leakboard.bench.backbones.prefix import Prefix, pass_block


class DistilBert(Family):
    model_types: ClassVar[tuple[str, ...]] = ("distilbert",)
    lora_targets: ClassVar[tuple[str, ...]] = ("q_lin", "v_lin")

    def embeddings(self, model: Any) -> nn.Embedding:
        return cast(nn.Embedding, model.embeddings.word_embeddings)

    def stack(self, model: Any) -> nn.ModuleList:
        return cast(nn.ModuleList, model.transformer.layer)

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        return cast(Tensor, model.embeddings(None, inputs_embeds=h))

    def through(
        self,
        model: Any,
        x: Tensor,
        mask: Tensor,
        first: int,
        last: int,
        prefix: Prefix | None = None,
    ) -> Tensor:
        seen = behind(model.config, x, mask, prefix)
        for i in range(first, last):
            block: Any = self.stack(model)[i]
            own = block.attention
            x = pass_block(partial(block, attention_mask=seen), x, prefix, own.k_lin, own.v_lin, i)
        return x

    def heads(self, model: Any) -> tuple[int, int]:
        return model.config.n_heads, model.config.dim // model.config.n_heads
