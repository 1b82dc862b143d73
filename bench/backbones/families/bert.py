"""BERT: word embeddings, then position and type embeddings, then a stack of blocks."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from torch import Tensor, nn
from transformers.masking_utils import create_bidirectional_mask

from leakboard.bench.backbones.cache_argument import cache_argument
from leakboard.bench.backbones.family import Family
from leakboard.bench.backbones.prefix import Prefix


class Bert(Family):
    model_types: ClassVar[tuple[str, ...]] = ("bert",)
    lora_targets: ClassVar[tuple[str, ...]] = ("query", "value")

    def embeddings(self, model: Any) -> nn.Embedding:
        return cast(nn.Embedding, model.embeddings.word_embeddings)

    def stack(self, model: Any) -> nn.ModuleList:
        return cast(nn.ModuleList, model.encoder.layer)

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        return cast(Tensor, model.embeddings(inputs_embeds=h, token_type_ids=types))

    def through(
        self,
        model: Any,
        x: Tensor,
        mask: Tensor,
        first: int,
        last: int,
        prefix: Prefix | None = None,
    ) -> Tensor:
        seen = between(model.config, x, mask, prefix)
        for block in self.stack(model)[first:last]:
            x = block(x, seen, **cache_argument(prefix))
        return x

    def heads(self, model: Any) -> tuple[int, int] | None:
        n = model.config.num_attention_heads
        return n, model.config.hidden_size // n


def behind(config: Any, x: Tensor, mask: Tensor, prefix: Prefix | None) -> Any:
    """Mask for blocks that take no cache, see `pass_block`: of x [B, L, d], or of N + L rows."""
    if prefix is None:
        return create_bidirectional_mask(config, x, mask)
    return create_bidirectional_mask(config, prefix.in_front(x), prefix.widened(mask))


def between(config: Any, x: Tensor, mask: Tensor, prefix: Prefix | None) -> Any:
    """What each of `x` [B, L, d] may see, as transformers wants it: real positions and the prefix."""
    if prefix is None:
        return create_bidirectional_mask(config, x, mask)
    keys = prefix.widened(mask)
    return create_bidirectional_mask(config, x, keys, x.new_empty(*keys.shape, 0))
