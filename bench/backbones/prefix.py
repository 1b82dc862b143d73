"""Additional keys and values to which each block attends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers.cache_utils import Cache


class Prefix(Cache):  # type: ignore[misc]  # transformers is not typed
    """N keys and values for each block, the same for every example (Li & Liang 2021, section 4).

    A read-only cache of transformers.

    Attributes:
        values: [blocks, 2, heads, N, width of a head], keys before values.
    """

    def __init__(self, values: Tensor) -> None:
        super().__init__(layers=[])
        self.values = values

    @property
    def length(self) -> int:
        return self.values.shape[3]

    def widened(self, mask: Tensor) -> Tensor:
        """[B, N + L] mask of visible keys: all of the prefix, and those of `mask` [B, L]."""
        return torch.cat([mask.new_ones(len(mask), self.length), mask], 1)

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Keys and values [B, heads, N + L, width] of a block, with those of the prefix first."""
        prefix = self.values[layer_idx, :, None].expand(-1, len(key_states), -1, -1, -1)
        keys, values = prefix.to(key_states.dtype)
        return torch.cat([keys, key_states], 2), torch.cat([values, value_states], 2)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Number of keys in the prefix."""
        return self.length

    def in_front(self, x: Tensor) -> Tensor:
        """Hidden states [B, N + L, d] that start with N zeros, see `written`."""
        return torch.cat([x.new_zeros(len(x), self.length, x.shape[2]), x], 1)

    @contextmanager
    def written(self, x: Tensor, keys: nn.Module, values: nn.Module, block: int) -> Iterator[None]:
        """Context in which two layers output the prefix for the first N rows of `x`, for attention without a cache.

        Args:
            x: [B, N + L, d], see `in_front`; outputs for other inputs stay unchanged.
            keys, values: linear layers of the block, with outputs [B, N + L, heads × width].
        """

        def over(own: Tensor, layer: nn.Module, args: tuple[Tensor, ...], out: Tensor) -> Tensor:
            if args[0] is not x:
                return out
            rows = own.transpose(0, 1).flatten(1).expand(len(out), -1, -1).to(out.dtype)
            return torch.cat([rows, out[:, self.length :]], 1)

        hooks = [
            layer.register_forward_hook(partial(over, own))
            for layer, own in zip((keys, values), self.values[block], strict=True)
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()


MaybePrefix = Prefix | None


def pass_block(
    call: Callable[[Tensor], Tensor],
    x: Tensor,
    prefix: Prefix | None,
    keys: nn.Module,
    values: nn.Module,
    number: int,
) -> Tensor:
    """[B, L, d] output of a block whose attention takes no cache, with a prefix if there is one.

    Args:
        call: the block, a function of [B, L, d] or [B, N + L, d].
        keys, values: linear layers of the block.
        number: index of the block.
    """
    if prefix is None:
        return call(x)
    wide = prefix.in_front(x)
    with prefix.written(wide, keys, values, number):
        return call(wide)[:, prefix.length :]
