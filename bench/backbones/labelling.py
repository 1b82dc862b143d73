"""Next-token labels of a language model and their loss, computed in chunks.

Logits have one row per token and one column per word, and vocabularies have up to 262,144 words. So at most `CHUNK`
bytes of logits are in memory at once.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from torch.utils.checkpoint import checkpoint

from leakboard.bench.backbones.ragged import Tokens

NO_LABEL = -100
"""Label of places without a next token, which `cross_entropy` ignores."""
CHUNK = 2**27
"""Limit in bytes of float32 scores in memory at once; a single example may exceed it."""


def next_tokens(tokens: Tokens) -> Tensor:
    """[T] id of the next token at each place; `NO_LABEL` at the end of an example and within prompts.

    In a pair, the first text is the prompt, and the second one is learned.
    """
    ids, lengths = tokens.ids.values, tokens.lengths
    example = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    paired = torch.zeros(len(lengths), dtype=torch.bool)
    paired[example[tokens.types > 0]] = True
    is_learned = (tokens.types > 0) | ~paired[example]
    labels = torch.full_like(ids, NO_LABEL)
    labels[:-1] = torch.where(is_learned, ids, NO_LABEL)[1:]
    labels[tokens.ids.starts + lengths - 1] = NO_LABEL
    return labels


def score_loss(scores: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
    """Loss of scores [m, C] that fits the labels.

    It is the cross-entropy of whole numbers [m], which are classes; the squared error of fractions [m], which are the
    numbers themselves (C = 1); and the binary cross-entropy of fractions [m, C], which are 1 for labels that apply.

    Args:
        reduction: "mean", "sum", or "none" for one loss [m] for each row.
    """
    if not labels.is_floating_point():
        return cross_entropy(scores, labels, reduction=reduction)
    if labels.ndim == 1:
        each = (scores[:, 0] - labels).square()
    else:
        each = binary_cross_entropy_with_logits(scores, labels, reduction="none").mean(1)
    return each if reduction == "none" else each.sum() if reduction == "sum" else each.mean()


def label_loss(head: nn.Module, h: Tensor, labels: Tensor) -> Tensor:
    """Mean `score_loss` of the scores head(h) of vectors h [m, d] with labels.

    Scores above `CHUNK` bytes are computed in parts, and again for the gradient.
    """
    parts = list(_split(head, h, labels))
    if len(parts) == 1:
        return score_loss(head(h), labels)
    sums = [checkpoint(_summed, head, *part, use_reentrant=False) for part in parts]
    total: Tensor = torch.stack(sums).sum()
    return total / (labels != NO_LABEL).sum()


def readings(scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """[m] −ln p of each label by scores [m, C], 0 without a label, and [m] the likeliest class."""
    lost = cross_entropy(scores, labels, reduction="none", ignore_index=NO_LABEL)
    return lost, scores.argmax(1)


def chunked_readings(head: nn.Module, h: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """`readings` of scores head(h), computed in parts."""
    lost, best = zip(*(readings(head(x), y) for x, y in _split(head, h, labels)), strict=True)
    return torch.cat(lost), torch.cat(best)


def pieces(lengths: Tensor, columns: int) -> Iterator[tuple[slice, slice]]:
    """Slices of examples, and of their tokens, whose tables fit into `CHUNK`; at least one example per slice.

    Args:
        columns: number of columns of a table with one row per token.
    """
    ends, start, taken = lengths.cumsum(0), 0, 0
    while start < len(lengths):
        fitting = torch.searchsorted(ends, taken + CHUNK // (4 * columns), right=True)
        stop = max(start + 1, int(fitting))
        yield slice(start, stop), slice(taken, int(ends[stop - 1]))
        start, taken = stop, int(ends[stop - 1])


def _split(head: nn.Module, h: Tensor, labels: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    rows = max(1, CHUNK // (4 * int(head.out_features)))  # type: ignore[arg-type]
    return zip(torch.split(h, rows), torch.split(labels, rows), strict=True)


def _summed(head: nn.Module, h: Tensor, labels: Tensor) -> Tensor:
    return score_loss(head(h), labels, "sum")
