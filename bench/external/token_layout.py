"""Positions of the examples in a batch: padded, packed into one row, or behind virtual tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from leakboard.bench.backbones import Ragged
from leakboard.bench.contracts import LeakboardError, form

POSITIONS = "position_ids"
ENDS = ("cu_seq_lens_q", "cu_seqlens", "cu_seqlens_q")
"""Names of the cumulative lengths [n + 1] of packed examples."""


@dataclass(frozen=True)
class TokenLayout:
    """Where the tokens of each example are in a batch [B, L].

    Attributes:
        length: L, without virtual tokens.
        at: [T] indices into the flattened batch, one example after another.
        lengths: [n] tokens of each example, on the CPU.
        packed: whether a row of the batch holds several examples.
        virtual: number of virtual tokens in front of each row, which belong to no text.
    """

    length: int
    at: Tensor
    lengths: Tensor
    packed: bool = False
    virtual: int = 0

    def __len__(self) -> int:
        return len(self.lengths)

    @classmethod
    def of(cls, rows: int, length: int, given: dict[str, Any], virtual: int = 0) -> TokenLayout:
        """The layout of a batch with these arguments of the model.

        Examples of one row are told apart as attention does: by positions that start again, or by cumulative lengths.

        Raises:
            LeakboardError: the attention mask has another shape.
        """
        starts = _starts(rows, length, given)
        mask = _mask(rows, length, given.get("attention_mask"), virtual, starts.any())
        at = mask.flatten().nonzero()[:, 0]
        row = at // length
        begins = torch.ones_like(at, dtype=torch.bool)
        begins[1:] = (row[1:] != row[:-1]) | starts.flatten()[at][1:]
        positions = given.get(POSITIONS)
        if isinstance(positions, Tensor) and positions.shape in ((rows, length), (1, length)):
            here = positions.cpu().expand(rows, length).flatten()[at]
            begins[1:] |= here[1:] <= here[:-1]
        if not len(at):
            return cls(length, at, torch.zeros(rows, dtype=torch.long), virtual=virtual)
        counts = torch.diff(begins.nonzero()[:, 0], append=torch.tensor([len(at)]))
        owners = row[begins]
        if len({*owners.tolist()}) < rows:  # rows without any token keep their place
            counts, owners = _with_empty(counts, owners, rows)
        return cls(length, at, counts, len(counts) > rows, virtual)

    def only(self, rows: Tensor) -> TokenLayout:
        """The layout of some of the examples [n]."""
        chosen = Ragged(self.at.cpu(), self.lengths).take(rows)
        return replace(self, at=chosen.values, lengths=chosen.lengths)

    def take(self, values: Tensor) -> Ragged:
        """A copy of values [B, L, …] of real tokens, as [T, …]; values of virtual tokens are left out.

        Raises:
            LeakboardError: there are fewer values than tokens.
        """
        extra = values.shape[1] - self.length
        if extra not in (0, self.virtual):
            raise LeakboardError(
                f"cut: expected one vector per token of a batch of {self.length} tokens per row, got {form(values)}"
            )
        flat = values[:, extra:].flatten(0, 1)
        return Ragged(flat[self.at.to(values.device)], self.lengths)


def _starts(rows: int, length: int, given: dict[str, Any]) -> Tensor:
    """[B, L] True where cumulative lengths say that an example begins."""
    starts = torch.zeros(rows, length, dtype=torch.bool)
    ends = next((given[name] for name in ENDS if isinstance(given.get(name), Tensor)), None)
    if ends is not None:
        inner = ends.detach().cpu().flatten().long()
        starts.view(-1)[inner[inner < rows * length]] = True
    return starts


def _mask(rows: int, length: int, mask: Any, virtual: int, marked: Tensor) -> Tensor:
    """[B, L] True for tokens of texts, on the CPU."""
    if mask is None or (marked and getattr(mask, "ndim", 0) != 2):
        return torch.ones(rows, length, dtype=torch.bool)
    expected = ((rows, length), (rows, length + virtual))
    if not isinstance(mask, Tensor) or mask.ndim != 2:
        raise LeakboardError(
            f"attention_mask: expected [B, L], got {form(mask)}, which does not say where examples begin. For packed "
            "examples give position_ids that start again with each one, and no mask"
        )
    if virtual == 0 and len(mask) == rows and mask.shape[1] > length:  # a prefix in the cache
        return mask[:, mask.shape[1] - length :].cpu() > 0
    if mask.shape not in expected:
        raise LeakboardError(
            f"attention_mask: has the shape {list(mask.shape)}, but there are {[rows, length]} "
            "token ids; expected one entry per token"
        )
    return mask[:, mask.shape[1] - length :].detach().cpu() > 0


def _with_empty(counts: Tensor, owners: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    """Counts of examples in which each row without a token has an empty one."""
    empty = torch.tensor(sorted({*range(rows)} - {*owners.tolist()}))
    every = torch.cat([owners, empty])
    order = every.argsort(stable=True)
    return torch.cat([counts, torch.zeros_like(empty)])[order], every[order]
