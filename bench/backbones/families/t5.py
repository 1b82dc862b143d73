"""T5, the encoder alone: one bias for relative positions, kept in block 0 and shared by all blocks."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from torch import Tensor, nn

from leakboard.bench.backbones.cache_argument import cache_argument
from leakboard.bench.backbones.families.bert import between
from leakboard.bench.backbones.family import Family
from leakboard.bench.backbones.prefix import Prefix


class T5(Family):
    model_types: ClassVar[tuple[str, ...]] = ("t5",)
    lora_targets: ClassVar[tuple[str, ...]] = ("q", "v")
    loader: ClassVar[str] = "T5EncoderModel"

    def embeddings(self, model: Any) -> nn.Embedding:
        return cast(nn.Embedding, model.shared)

    def stack(self, model: Any) -> nn.ModuleList:
        return cast(nn.ModuleList, model.encoder.block)

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        return cast(Tensor, model.encoder.dropout(h))

    def through(
        self,
        model: Any,
        x: Tensor,
        mask: Tensor,
        first: int,
        last: int,
        prefix: Prefix | None = None,
    ) -> Tensor:
        seen = between(model.encoder.config, x, mask, prefix)
        # It depends on the length alone, so the vendor computes it from the public weights. A prefix
        # stands in front of the first token.
        attention, n = (
            model.encoder.block[0].layer[0].SelfAttention,
            0 if prefix is None else prefix.length,
        )
        bias = attention.compute_bias(x.shape[1], n + x.shape[1], x.device, past_seen_tokens=n)
        for block in self.stack(model)[first:last]:
            x, _, _ = block(x, seen, bias, **cache_argument(prefix))
        return x

    def heads(self, model: Any) -> tuple[int, int]:
        return model.config.num_heads, model.config.d_kv

    def leave(self, model: Any, x: Tensor) -> Tensor:
        return cast(Tensor, model.encoder.dropout(model.encoder.final_layer_norm(x)))
