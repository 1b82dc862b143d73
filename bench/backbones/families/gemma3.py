"""Gemma 3 for text: scaled word embeddings, and full and windowed attention with different angles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from torch import Tensor, nn

from leakboard.bench.backbones.families.llama import Llama
from leakboard.bench.contracts import LeakboardError


class Gemma3(Llama):
    model_types: ClassVar[tuple[str, ...]] = ("gemma3_text",)

    def embeddings(self, model: Any) -> nn.Embedding:
        # The model's module scales its output. `enter` does this instead, so that rows of E are sent at cut 0.
        table = nn.Embedding(1, 1, _weight=model.embed_tokens.weight[:1, :1])
        table.weight = model.embed_tokens.weight
        return table

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        return cast(Tensor, h * model.embed_tokens.embed_scale.to(h.dtype))

    def reaches(self, model: Any) -> Sequence[str]:
        if model.config.use_bidirectional_attention:
            raise LeakboardError(
                "this Gemma 3 attends in both directions (EmbeddingGemma), which is not supported yet; "
                "use one that predicts the next token"
            )
        return cast(Sequence[str], model.config.layer_types)

    def angles(self, model: Any, x: Tensor, positions: Tensor, reach: str) -> Any:
        return model.rotary_emb(x, positions, reach)
