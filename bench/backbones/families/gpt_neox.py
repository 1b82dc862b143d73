"""GPT-NeoX (Pythia): as Llama, with attention and the dense layers side by side in a block."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from torch import Tensor, nn

from leakboard.bench.backbones.families.llama import Llama


class GPTNeoX(Llama):
    model_types: ClassVar[tuple[str, ...]] = ("gpt_neox",)
    lora_targets: ClassVar[tuple[str, ...]] = ("query_key_value",)
    """Queries, keys and values in one layer."""

    def embeddings(self, model: Any) -> nn.Embedding:
        return cast(nn.Embedding, model.embed_in)

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        return cast(Tensor, model.emb_dropout(h))

    def leave(self, model: Any, x: Tensor) -> Tensor:
        return cast(Tensor, model.final_layer_norm(x))
