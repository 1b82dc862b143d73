"""Next-token losses over large vocabularies, computed in chunks of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from leakboard.bench.backbones.precision import cast_weight

CHUNK = 2**28
"""Limit in bytes of float32 scores in memory at once; for Gemma's 262,144 words, 256 places."""


def fits(places: int, head: Tensor) -> bool:
    """Whether the scores of so many places fit into `CHUNK`."""
    return 4 * places * len(head) <= CHUNK


def chunks(hidden: Tensor, head: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Slices of places [T, d] in order, and their scores [t, V] in float32."""
    step = max(1, CHUNK // (4 * len(head)))
    dtype = compute_dtype(hidden)
    head = cast_weight(head, dtype)
    with torch.autocast(hidden.device.type, enabled=False):
        for at in range(0, len(hidden), step):
            places = slice(at, at + step)
            yield places, linear(hidden[places].to(dtype), head).float()


def compute_dtype(hidden: Tensor) -> torch.dtype:
    """Data type of matrix products: that of autocast if it is enabled, else that of `hidden`."""
    device = hidden.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype


def losses(hidden: Tensor, head: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """[T] −ln p of tokens `ids` [T] in float32, given last hidden states [T, d], and [T] True for likeliest tokens.

    Differentiable in `hidden` and `head` [V, d].
    """
    loss, hits = _Losses.apply(hidden, head, ids)  # type: ignore[no-untyped-call]
    return loss, hits


class _Losses(torch.autograd.Function):
    """Loss with a gradient that is computed in the forward pass if the head is frozen.

    ∂loss/∂hidden is Wᵀ(p − y) at every place, times ∂/∂loss in the backward pass. The gradient of a trained head depends
    on ∂/∂loss, so scores are then computed again.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, head: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        loss = hidden.new_empty(len(hidden), dtype=torch.float32)
        hits = torch.empty_like(ids, dtype=torch.bool)
        ctx.again = ctx.needs_input_grad[1]
        slopes = torch.empty_like(hidden) if ctx.needs_input_grad[0] and not ctx.again else None
        words = cast_weight(head, compute_dtype(hidden))
        for places, scores in chunks(hidden, words):
            # Few passes over the table of places times words, since each costs as much as the product.
            of_label, most = scores.gather(1, ids[places, None]), scores.amax(1, keepdim=True)
            weights = scores.sub_(most).exp_()
            total = weights.sum(1, keepdim=True)
            loss[places] = (most + total.log() - of_label)[:, 0]
            hits[places] = (of_label == most)[:, 0]
            if slopes is not None:
                slopes[places] = weights.to(words.dtype) @ words / total - words[ids[places]]
        ctx.save_for_backward(*((hidden, head, ids) if ctx.again else (slopes,)))
        ctx.mark_non_differentiable(hits)
        return loss, hits

    @staticmethod
    def backward(ctx: Any, slope: Tensor, _: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        if not ctx.again:
            (slopes,) = ctx.saved_tensors
            return (slopes * slope[:, None]).to(slopes.dtype), None, None
        hidden, head, ids = ctx.saved_tensors
        of_hidden, of_head = torch.zeros_like(hidden), torch.zeros_like(head)
        for places, scores in chunks(hidden, head):
            total = scores.logsumexp(1, keepdim=True)
            errors = _less_truth(scores, total, ids[places, None]) * slope[places, None]
            of_hidden[places] = (errors @ head.float()).to(hidden.dtype)
            of_head += (errors.T @ hidden[places].float()).to(head.dtype)
        return of_hidden, of_head, None


def _less_truth(scores: Tensor, total: Tensor, labels: Tensor) -> Tensor:
    """p − y of each place; overwrites the scores."""
    p = scores.sub_(total).exp_()
    return p.scatter_add_(1, labels, -torch.ones_like(labels, dtype=p.dtype))
