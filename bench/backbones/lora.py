"""LoRA in the blocks of a model (Hu et al. 2022), by peft."""

from __future__ import annotations

from torch import nn

from leakboard.bench.backbones.family import Family
from leakboard.bench.contracts import TrainSettings


def inject(blocks: nn.ModuleList, family: Family, settings: TrainSettings) -> None:
    """Adds an adapter to each block and freezes the other weights; B = 0, so the output is unchanged."""
    if not len(blocks):
        return
    from peft import LoraConfig, inject_adapter_in_model

    config = LoraConfig(
        r=settings.lora_rank,
        lora_alpha=settings.lora_alpha,
        target_modules=list(family.lora_targets),
        fan_in_fan_out=family.transposed,
    )
    # Into the blocks, since peft reads a block's number from its name, which differs between families.
    inject_adapter_in_model(config, blocks)


def add_adapter(linear: nn.Linear, settings: TrainSettings) -> nn.Module:
    """A linear layer with a new adapter; the weights of the layer stay unchanged."""
    from peft import LoraConfig, inject_adapter_in_model

    config = LoraConfig(
        r=settings.lora_rank, lora_alpha=settings.lora_alpha, target_modules=["layer"]
    )
    holder = nn.ModuleDict({"layer": linear})
    inject_adapter_in_model(config, holder)
    return holder["layer"].to(linear.weight.device)
