"""BERT: word embeddings, then position and type embeddings, then a stack of blocks."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from torch import Tensor
from transformers.masking_utils import create_bidirectional_mask

from leakboard.bench.backbones.cache_argument import cache_argument
from leakboard.bench.backbones.family import Family
from leakboard.bench.backbones.prefix import MaybePrefix, Prefix


class Bert(Family):
    model_types: ClassVar[tuple[str, ...]] = ("bert",)
    embeddings_path: ClassVar[str] = "embeddings.word_embeddings"
    stack_path: ClassVar[str] = "encoder.layer"
    lora_targets: ClassVar[tuple[str, ...]] = ("query", "value")

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        return cast(Tensor, model.embeddings(inputs_embeds=h, token_type_ids=types))

    def through(
        self, model: Any, x: Tensor, mask: Tensor, first: int, last: int, prefix: MaybePrefix = None
    ) -> Tensor:
        seen = between(model.config, x, mask, prefix)
        for block in self.stack(model)[first:last]:
            x = block(x, seen, **cache_argument(prefix))
        return x

    def heads(self, model: Any) -> tuple[int, int] | None:
        n = model.config.num_attention_heads
        return n, model.config.hidden_size // n


def behind(config: Any, x: Tensor, mask: Tensor, prefix: Prefix | None) -> Any:
    """Attention mask for blocks that take no cache, see `pass_block`: for L or N + L rows."""
    if prefix is None:
        return create_bidirectional_mask(config, x, mask)
    return create_bidirectional_mask(config, prefix.in_front(x), prefix.widened(mask))


def between(config: Any, x: Tensor, mask: Tensor, prefix: Prefix | None) -> Any:
    """Attention mask of transformers for `x` [B, L, d]: real positions and the prefix are visible."""
    if prefix is None:
        return create_bidirectional_mask(config, x, mask)
    keys = prefix.widened(mask)
    return create_bidirectional_mask(config, x, keys, x.new_empty(*keys.shape, 0))
