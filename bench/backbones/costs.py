"""Cost of the bottom model for the customer."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from leakboard.bench.backbones.backbone import Backbone
from leakboard.bench.backbones.ragged import Ragged
from leakboard.bench.contracts import BottomCost, Memory, digest

_MEASURED = Memory(capacity=64)
"""Costs by model, cut, length and batch: counting takes longer than a step of training, and cells of a suite share them."""


def bottom_cost(backbone: Backbone, cut: int, lengths: Tensor, batch_size: int) -> BottomCost:
    """Cost of the bottom model, measured on one example of the mean of `lengths` [n], without padding.

    Only parameters on which the representation depends are counted.
    """
    tokens = max(1, round(float(lengths.float().mean())))
    key = digest([backbone.hash, cut, tokens, batch_size])
    return _MEASURED.recall(key, lambda _: _measured(backbone, cut, tokens, batch_size))


def _measured(backbone: Backbone, cut: int, tokens: int, batch_size: int) -> BottomCost:
    types = torch.zeros(tokens, dtype=torch.long, device=backbone.device)
    table = backbone.family.embeddings(backbone.model)
    parameters = list(backbone.model.parameters())
    backbone.model.requires_grad_()
    try:
        # Attention as plain products, since the counter does not support every fused kernel.
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            words = Ragged(table(types), torch.tensor([tokens]))
            out = backbone.bottom(words, types, cut).values
        gradients = torch.autograd.grad(out.sum(), parameters, allow_unused=True)
    finally:
        backbone.model.requires_grad_(False)
    used = [p for p, g in zip(parameters, gradients, strict=True) if g is not None]
    size = sum(p.numel() * p.element_size() for p in used)
    size += batch_size * out.numel() * out.element_size()
    return BottomCost(
        parameters=sum(p.numel() for p in used),
        tokens=tokens,
        flops=counter.get_total_flops(),
        megabytes=size / 1e6,
    )
