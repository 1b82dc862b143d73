"""Encoder of T5: one bias for relative positions, stored in block 0 and shared by all blocks."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from torch import Tensor

from leakboard.bench.backbones.cache_argument import cache_argument
from leakboard.bench.backbones.families.bert import between
from leakboard.bench.backbones.family import Family
from leakboard.bench.backbones.prefix import MaybePrefix


class T5(Family):
    model_types: ClassVar[tuple[str, ...]] = ("t5",)
    embeddings_path: ClassVar[str] = "shared"
    stack_path: ClassVar[str] = "encoder.block"
    lora_targets: ClassVar[tuple[str, ...]] = ("q", "v")
    loader: ClassVar[str] = "T5EncoderModel"

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        return cast(Tensor, model.encoder.dropout(h))

    def through(
        self, model: Any, x: Tensor, mask: Tensor, first: int, last: int, prefix: MaybePrefix = None
    ) -> Tensor:
        seen = between(model.encoder.config, x, mask, prefix)
        # The bias depends on the length only, so the vendor can compute it. A prefix precedes the first token.
        attention = model.encoder.block[0].layer[0].SelfAttention
        n = 0 if prefix is None else prefix.length
        bias = attention.compute_bias(x.shape[1], n + x.shape[1], x.device, past_seen_tokens=n)
        for block in self.stack(model)[first:last]:
            x, _, _ = block(x, seen, bias, **cache_argument(prefix))
        return x

    def heads(self, model: Any) -> tuple[int, int]:
        return model.config.num_heads, model.config.d_kv

    def leave(self, model: Any, x: Tensor) -> Tensor:
        return cast(Tensor, model.encoder.dropout(model.encoder.final_layer_norm(x)))
