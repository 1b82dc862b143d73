"""Random draws of several networks in one pass, each as if the others were not there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as fn
from torch.nn.functional import pad
from torch.overrides import TorchFunctionMode

from leakboard.bench.backbones.device import random_state, set_random_state


class Unstackable(Exception):
    """A model does something that cannot be told apart by network."""


class Draws(TorchFunctionMode):
    """In it dropout falls for each part as it would fall without the others.

    Args:
        lengths: [Bₖ] of each part's examples.
        rows: B ≥ Bₖ, of each part in the batch of K·B examples.
        device: where dropout is drawn.
        states: of the random generator, from which each part draws; afterwards, where it ended.
    """

    def __init__(
        self, lengths: Sequence[Tensor], rows: int, device: torch.device, states: Sequence[Tensor]
    ) -> None:
        super().__init__()
        self.sizes = [(len(own), int(own.max())) for own in lengths]
        self.rows, self.longest = rows, max(longest for _, longest in self.sizes)
        self.states, self.device = list(states), str(device)
        self.before = random_state(self.device)

    def check(self) -> None:
        """Raises Unstackable where something was drawn that nobody here has seen."""
        if not torch.equal(self.before, random_state(self.device)):
            raise Unstackable("the model draws at random by other means than dropout")

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is fn.dropout:
            return self._dropped(*args, **kwargs)
        if func is fn.scaled_dot_product_attention and kwargs.get("dropout_p"):
            return self._attended(*args, **kwargs)
        return func(*args, **kwargs)

    def _drawn(self, k: int, call: Callable[[], Tensor]) -> Tensor:
        set_random_state(self.states[k], self.device)
        found = call()
        self.states[k] = random_state(self.device)
        set_random_state(self.before, self.device)
        return found

    def _dropped(
        self, x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> Tensor:
        """Of hidden states [K·B, L, d], or of attention weights [K·B, H, L, L]."""
        if not training or p == 0:
            return x
        among = x.shape[1:2] if x.ndim == 3 else x.shape[2:]
        if (
            x.ndim not in (3, 4)
            or len(x) != len(self.sizes) * self.rows
            or {*among} != {self.longest}
        ):
            raise Unstackable(f"dropout on a tensor of shape {tuple(x.shape)}")
        drawn = []
        for k, (rows, length) in enumerate(self.sizes):
            own = (length, x.shape[2]) if x.ndim == 3 else (x.shape[1], length, length)
            drawn.append(self._drawn(k, partial(fn.dropout, x.new_ones(rows, *own), p)))
        return x * self._together(drawn, x.shape)

    def _together(self, parts: Sequence[Tensor], whole: Sequence[int]) -> Tensor:
        """One tensor of a shape [K·B, …] from one for each part, of its own lengths, filled up by zeros."""
        filled, size = [], (self.rows, *whole[1:])
        for part in parts:
            lacking = [most - here for most, here in zip(size, part.shape, strict=True)]
            room = [side for more in reversed(lacking) for side in (0, more)]
            filled.append(pad(part, room) if any(lacking) else part)
        return torch.cat(filled)

    def _attended(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        **how: Any,
    ) -> Tensor:
        """Attention with dropout, which kernels draw inside: one call for each part."""
        found, many = [], len(self.sizes)
        masks: Sequence[Tensor | None] = [attn_mask] * many
        if attn_mask is not None and len(attn_mask) > 1:
            masks = attn_mask.chunk(many)
        vectors = zip(*(each.chunk(many) for each in (query, key, value)), strict=True)
        for k, (parts, mask) in enumerate(zip(vectors, masks, strict=True)):
            rows, n = self.sizes[k]
            seen = None if mask is None else mask[:rows, ..., :n, :n]
            asks, keys, values = (part[:rows, :, :n] for part in parts)
            attended = partial(
                fn.scaled_dot_product_attention, *(asks, keys, values, seen, dropout_p), **how
            )
            found.append(self._drawn(k, attended))
        return self._together(found, (*query.shape[:-1], value.shape[-1]))
