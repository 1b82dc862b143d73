"""ALBERT: narrow word embeddings, and one block that is repeated."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, ClassVar, cast

from torch import Tensor, nn

from leakboard.bench.backbones.families.bert import Bert, behind
from leakboard.bench.backbones.prefix import MaybePrefix, pass_block


class Albert(Bert):
    model_types: ClassVar[tuple[str, ...]] = ("albert",)
    stack_path: ClassVar[str] = "encoder.albert_layer_groups"
    narrow_embeddings: ClassVar[bool] = True

    def prepare(self, model: Any) -> None:
        # One module per pass, so that they can be cut and have different adapters; weights stay shared.
        groups, passes = model.encoder.albert_layer_groups, model.config.num_hidden_layers
        chosen = [groups[i * len(groups) // passes] for i in range(passes)]
        model.encoder.albert_layer_groups = nn.ModuleList(
            copy.deepcopy(group, {id(p): p for p in group.parameters()}) for group in chosen
        )
        model.config.num_hidden_groups = passes

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        x = super().enter(model, h, mask, types)
        # Hidden states stay in float32 under autocast, as without the projection.
        return cast(Tensor, model.encoder.embedding_hidden_mapping_in(x).to(x.dtype))

    def through(
        self, model: Any, x: Tensor, mask: Tensor, first: int, last: int, prefix: MaybePrefix = None
    ) -> Tensor:
        seen = behind(model.config, x, mask, prefix)
        for i in range(first, last):
            block: Any = self.stack(model)[i]
            own = block.albert_layers[0].attention
            x = pass_block(partial(block, attention_mask=seen), x, prefix, own.key, own.value, i)
        return x

    def heads(self, model: Any) -> tuple[int, int] | None:
        # A pass of several layers would need a prefix for each.
        return super().heads(model) if model.config.inner_group_num == 1 else None
