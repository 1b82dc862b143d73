"""Next-token losses over large vocabularies, computed in chunks of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from leakboard.bench.backbones.precision import cast_weight

CHUNK = 2**28
"""Bytes of float32 scores that are held at once; of Gemma's 262,144 words those at 256 places."""


def fits(places: int, head: Tensor) -> bool:
    """Whether the scores of so many places may be held at once."""
    return 4 * places * len(head) <= CHUNK


def chunks(hidden: Tensor, head: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Of places [T, d] in order, some at a time: which, and their scores [t, V] in float32."""
    step = max(1, CHUNK // (4 * len(head)))
    dtype = compute_dtype(hidden)
    head = cast_weight(head, dtype)
    with torch.autocast(hidden.device.type, enabled=False):
        for at in range(0, len(hidden), step):
            here = slice(at, at + step)
            yield here, linear(hidden[here].to(dtype), head).float()


def compute_dtype(hidden: Tensor) -> torch.dtype:
    """What matrices are multiplied in here: what autocast asks for, or as they are."""
    device = hidden.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype


def losses(hidden: Tensor, head: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """−ln p [T] of tokens `ids` [T] in float32, given last hidden states [T, d], and whether each is the likeliest.

    Differentiable in `hidden` and `head` [V, d].
    """
    loss, hits = _Losses.apply(hidden, head, ids)  # type: ignore[no-untyped-call]
    return loss, hits


class _Losses(torch.autograd.Function):
    """Where the head is frozen, ∂loss/∂hidden is found on the way, and nothing is computed twice.

    It is Wᵀ(p − y) at every place, to be multiplied by ∂/∂loss later. What a trained head's gradient is
    depends on the latter, so that scores are then computed once more.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, head: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        loss = hidden.new_empty(len(hidden), dtype=torch.float32)
        hits = torch.empty_like(ids, dtype=torch.bool)
        ctx.again = ctx.needs_input_grad[1]
        slopes = torch.empty_like(hidden) if ctx.needs_input_grad[0] and not ctx.again else None
        words = cast_weight(head, compute_dtype(hidden))
        for here, scores in chunks(hidden, words):
            # As few looks at a table of places times words as there can be: they cost what products do.
            told, most = scores.gather(1, ids[here, None]), scores.amax(1, keepdim=True)
            weights = scores.sub_(most).exp_()
            total = weights.sum(1, keepdim=True)
            loss[here] = (most + total.log() - told)[:, 0]
            hits[here] = (told == most)[:, 0]
            if slopes is not None:
                slopes[here] = weights.to(words.dtype) @ words / total - words[ids[here]]
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
        for here, scores in chunks(hidden, head):
            total = scores.logsumexp(1, keepdim=True)
            each = _less_truth(scores, total, ids[here, None]) * slope[here, None]
            of_hidden[here] = (each @ head.float()).to(hidden.dtype)
            of_head += (each.T @ hidden[here].float()).to(head.dtype)
        return of_hidden, of_head, None


def _less_truth(scores: Tensor, total: Tensor, own: Tensor) -> Tensor:
    """p − y of each place, written over its scores."""
    p = scores.sub_(total).exp_()
    return p.scatter_add_(1, own, -torch.ones_like(own, dtype=p.dtype))
