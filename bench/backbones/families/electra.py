"""ELECTRA, the discriminator: BERT; small sizes have word embeddings narrower than the blocks."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from leakboard.bench.backbones.families.bert import Bert


class Electra(Bert):
    model_types: ClassVar[tuple[str, ...]] = ("electra",)

    narrow_embeddings: ClassVar[bool] = True

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        x = super().enter(model, h, mask, types)
        # Hidden states stay in float32 under autocast, as without the projection.
        return (
            model.embeddings_project(x).to(x.dtype) if hasattr(model, "embeddings_project") else x
        )
