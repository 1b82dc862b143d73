"""RoBERTa: as BERT, with a single segment."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from leakboard.bench.backbones.families.bert import Bert


class Roberta(Bert):
    model_types: ClassVar[tuple[str, ...]] = ("roberta", "xlm-roberta")

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        # The second text of a pair is marked by tokens only; there is no embedding for type 1.
        types = types.clamp(max=model.config.type_vocab_size - 1)
        return super().enter(model, h, mask, types)

    def positions(self, model: Any) -> int | None:
        # Numbers up to that of the padding are left free.
        most: int = model.config.max_position_embeddings - model.config.pad_token_id - 1
        return most
