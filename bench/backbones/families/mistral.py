"""Mistral: as Llama, with windowed attention in all blocks if a window is set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from leakboard.bench.backbones.families.llama import FULL, WINDOW, Llama


class Mistral(Llama):
    model_types: ClassVar[tuple[str, ...]] = ("mistral",)

    def reaches(self, model: Any) -> Sequence[str]:
        reach = FULL if model.config.sliding_window is None else WINDOW
        return [reach] * self.blocks(model)
