"""Shorter number formats. Frozen weights are cast once, and not at every pass.

Autocast keeps what it has cast of weights that train, and drops it when it ends; a frozen weight it casts each time
that it is used. Under LoRA nearly all weights are frozen, and of a large model that is a good part of a pass.
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
"""By weight its state when it was cast, and what came of it; both go when the weight goes."""


def autocast(precision: Precision, device: torch.device | str) -> torch.autocast:
    """In it a model computes in this precision; a pass back does as its forward did."""
    kind = torch.device(device).type
    return torch.autocast(kind, torch.bfloat16, enabled=precision == "bf16")


def cast_weight(weight: Tensor, dtype: torch.dtype) -> Tensor:
    """A weight as `dtype`: of a frozen one that has not changed since, what was cast before."""
    if weight.dtype == dtype or weight.requires_grad:
        return weight.to(dtype)
    now: _State = (dtype, weight.data_ptr(), weight._version)
    kept = _CAST.get(weight)
    if kept is None or kept[0] != now:
        with torch.inference_mode(False):  # it may be asked for again where gradients are taken
            kept = now, weight.detach().to(dtype)
        _CAST[weight] = kept
    return kept[1]


class CachedCastLinear(nn.Linear):
    """A frozen linear layer, which computes under autocast what it would by itself."""

    def forward(self, x: Tensor) -> Tensor:
        kind = x.device.type
        if not torch.is_autocast_enabled(kind):
            return super().forward(x)
        return linear(x, cast_weight(self.weight, torch.get_autocast_dtype(kind)), self.bias)


def cache_casts(module: nn.Module) -> None:
    """Makes all frozen linear layers of a module such ones; their weights stay what they are."""
    for layer in module.modules():
        if type(layer) is nn.Linear and not layer.weight.requires_grad:
            layer.__class__ = CachedCastLinear
