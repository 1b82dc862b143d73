"""Phi-3: as Mistral, with queries, keys and values in one layer."""

from __future__ import annotations

from typing import ClassVar

from leakboard.bench.backbones.families.mistral import Mistral


class Phi3(Mistral):
    model_types: ClassVar[tuple[str, ...]] = ("phi3",)
    lora_targets: ClassVar[tuple[str, ...]] = ("qkv_proj",)
