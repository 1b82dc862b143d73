"""Keys and values that each block attends to beside those of its tokens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Prefix:
    """N keys and values for each block, the same for every example (Li & Liang 2021, section 4).

    Attributes:
        values: [blocks, 2, heads, N, width of a head], keys before values.
    """

    values: Tensor

    @property
    def length(self) -> int:
        return self.values.shape[3]

    def widened(self, mask: Tensor) -> Tensor:
        """[B, N + L] which keys may be seen: all of the prefix, and those of `mask` [B, L]."""
        return torch.cat([mask.new_ones(len(mask), self.length), mask], 1)

    def update(self, keys: Tensor, values: Tensor, block: int) -> tuple[Tensor, Tensor]:
        """Keys and values [B, heads, N + L, width] of a block, those of the prefix in front.

        Attention of transformers asks this of a cache; ours is read and never written.
        """
        own = self.values[block, :, None].expand(-1, len(keys), -1, -1, -1).to(keys.dtype)
        return torch.cat([own[0], keys], 2), torch.cat([own[1], values], 2)

    def get_seq_length(self, block: int | None = None) -> int:
        """How many keys stand in front, as transformers asks a cache."""
        return self.length

    def in_front(self, x: Tensor) -> Tensor:
        """Hidden states [B, N + L, d] with N empty ones in front, to be `written` over."""
        return torch.cat([x.new_zeros(len(x), self.length, x.shape[2]), x], 1)

    @contextmanager
    def written(self, x: Tensor, keys: nn.Module, values: nn.Module, block: int) -> Iterator[None]:
        """Within it, what two layers make of the first N rows of `x` is the prefix instead.

        For attention that asks no cache. What the layers make of other inputs stays as it is.

        Args:
            x: [B, N + L, d], see `in_front`.
            keys: the linear layer of a block that makes them, [B, N + L, heads × width].
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
