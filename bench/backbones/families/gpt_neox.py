"""GPT-NeoX (Pythia): as Llama, with parallel attention and dense layers in a block."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from torch import Tensor

from leakboard.bench.backbones.families.llama import Llama


class GPTNeoX(Llama):
    model_types: ClassVar[tuple[str, ...]] = ("gpt_neox",)
    embeddings_path: ClassVar[str] = "embed_in"
    norm_path: ClassVar[str] = "final_layer_norm"
    lora_targets: ClassVar[tuple[str, ...]] = ("query_key_value",)
    """Queries, keys and values in one layer."""

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        return cast(Tensor, model.emb_dropout(h))
