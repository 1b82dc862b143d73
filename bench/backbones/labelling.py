"""Next-token labels of a language model and their loss, computed in chunks.

Logits have one row per token and one column per word, and vocabularies have up to 262,144 words. So at most `CHUNK`
bytes of logits are in memory at once.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from leakboard.bench.backbones.ragged import Tokens

NO_LABEL = -100
"""Of a token that nothing follows; what `cross_entropy` passes over."""
CHUNK = 2**27
"""Bytes of scores that are held at once, in float32, where an example has no more."""


def next_tokens(tokens: Tokens) -> Tensor:
    """[T] the id of the token after each one, `NO_LABEL` where none has to be told.

    That is so behind the last of an example, and where a prompt goes on: of a pair the first text is what
    is given, and the second what is learnt.
    """
    ids, lengths = tokens.ids.values, tokens.lengths
    example = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    paired = torch.zeros(len(lengths), dtype=torch.bool)
    paired[example[tokens.types > 0]] = True
    learnt = (tokens.types > 0) | ~paired[example]
    found = torch.full_like(ids, NO_LABEL)
    found[:-1] = torch.where(learnt, ids, NO_LABEL)[1:]
    found[tokens.ids.starts + lengths - 1] = NO_LABEL
    return found


def label_loss(head: nn.Module, h: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy of the scores head(h) of vectors h [m, d] against labels [m].

    Where the scores are more than `CHUNK` they are computed part by part, and once more for the gradient.
    """
    parts = list(_split(head, h, labels))
    if len(parts) == 1:
        return cross_entropy(head(h), labels)
    sums = [checkpoint(_summed, head, *part, use_reentrant=False) for part in parts]
    total: Tensor = torch.stack(sums).sum()
    return total / (labels != NO_LABEL).sum()


def readings(scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """−ln p of each label [m] by scores [m, C], 0 without one, and which would be the likeliest."""
    lost = cross_entropy(scores, labels, reduction="none", ignore_index=NO_LABEL)
    return lost, scores.argmax(1)


def chunked_readings(head: nn.Module, h: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The `readings` of scores head(h), part by part."""
    lost, best = zip(*(readings(head(x), y) for x, y in _split(head, h, labels)), strict=True)
    return torch.cat(lost), torch.cat(best)


def pieces(lengths: Tensor, columns: int) -> Iterator[tuple[slice, slice]]:
    """Whole examples in their order, and their tokens: as many at a time as fit into `CHUNK`, at least one.

    Args:
        columns: of a table with a row for each token.
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
    return cross_entropy(head(h), labels, reduction="sum")
