"""Qwen 2 and 3: as Llama, with windowed attention in some blocks of some sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from leakboard.bench.backbones.families.llama import Llama


class Qwen(Llama):
    model_types: ClassVar[tuple[str, ...]] = ("qwen2", "qwen3")

    def reaches(self, model: Any) -> Sequence[str]:
        return cast(Sequence[str], model.config.layer_types)
