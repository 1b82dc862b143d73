"""RoBERTa: as BERT, with a single segment."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from leakboard.bench.backbones.families.bert import Bert


class Roberta(Bert):
    model_types: ClassVar[tuple[str, ...]] = ("roberta", "xlm-roberta")

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        # There is no embedding for type 1: separators mark the second text of a pair.
        types = types.clamp(max=model.config.type_vocab_size - 1)
        return super().enter(model, h, mask, types)

    def positions(self, model: Any) -> int | None:
        # Position numbers up to the id of the padding are unused.
        most: int = model.config.max_position_embeddings - model.config.pad_token_id - 1
        return most
