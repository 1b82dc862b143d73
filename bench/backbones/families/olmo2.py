"""OLMo 2: as Llama, with norms after attention and dense layers."""

from __future__ import annotations

from typing import ClassVar

from leakboard.bench.backbones.families.llama import Llama


class Olmo2(Llama):
    model_types: ClassVar[tuple[str, ...]] = ("olmo2",)
