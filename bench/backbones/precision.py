"""Mixed precision with cached casts of frozen weights.

Autocast caches casts of trainable weights while it is active, but casts frozen weights at each use. Under LoRA nearly
all weights are frozen, and for a large model these casts take a large part of a forward pass.
"""

from __future__ import annotations

from collections.abc import MutableMapping

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.utils.weak import WeakTensorKeyDictionary

from leakboard.bench.contracts import Precision

_State = tuple[torch.dtype, int, int]
_CAST: MutableMapping[Tensor, tuple[_State, Tensor]] = WeakTensorKeyDictionary()
"""By weight: its state at the cast, and the result. Entries are removed with their weights."""


def autocast(precision: Precision, device: torch.device | str) -> torch.autocast:
    """Autocast context for a precision; the backward pass uses the precision of its forward pass."""
    kind = torch.device(device).type
    return torch.autocast(kind, torch.bfloat16, enabled=precision == "bf16")


def cast_weight(weight: Tensor, dtype: torch.dtype) -> Tensor:
    """A weight as `dtype`; the cached cast is returned for a frozen weight that has not changed."""
    if weight.dtype == dtype or weight.requires_grad:
        return weight.to(dtype)
    now: _State = (dtype, weight.data_ptr(), weight._version)
    cached = _CAST.get(weight)
    if cached is None or cached[0] != now:
        with torch.inference_mode(False):  # so that later passes with gradients can use it
            cached = now, weight.detach().to(dtype)
        _CAST[weight] = cached
    return cached[1]


class CachedCastLinear(nn.Linear):
    """Frozen linear layer that uses the cached cast under autocast, with the same result."""

    def forward(self, x: Tensor) -> Tensor:
        kind = x.device.type
        if not torch.is_autocast_enabled(kind):
            return super().forward(x)
        return linear(x, cast_weight(self.weight, torch.get_autocast_dtype(kind)), self.bias)


def cache_casts(module: nn.Module) -> None:
    """Convert all frozen linear layers of a module to `CachedCastLinear`; weights stay unchanged."""
    for layer in module.modules():
        if type(layer) is nn.Linear and not layer.weight.requires_grad:
            layer.__class__ = CachedCastLinear
