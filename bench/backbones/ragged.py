"""Sequences of different lengths in one flat tensor, and batches of similar lengths."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor
from torch.nn.functional import embedding


@dataclass(frozen=True)
class Ragged:
    """n concatenated sequences.

    Attributes:
        values: [T, …], T = lengths.sum().
        lengths: [n] int64, on the CPU.
    """

    values: Tensor
    lengths: Tensor

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def starts(self) -> Tensor:
        return self.lengths.cumsum(0) - self.lengths

    def positions(self, rows: Tensor) -> Tensor:
        """[t] indices into `values` of the entries of `rows`, in that order."""
        lengths = self.lengths[rows]
        offsets = torch.repeat_interleave(
            self.starts[rows] - (lengths.cumsum(0) - lengths), lengths
        )
        return torch.arange(int(lengths.sum())) + offsets

    def take(self, rows: Tensor) -> Ragged:
        """The sequences `rows`, in that order."""
        return Ragged(self.values[self.positions(rows)], self.lengths[rows])

    def sequences(self) -> list[tuple[int, ...]]:
        """Sequences of ids as tuples."""
        return [tuple(each.tolist()) for each in torch.split(self.values, self.lengths.tolist())]

    def with_values(self, values: Tensor) -> Ragged:
        """The same lengths with other values [T, …]."""
        return Ragged(values, self.lengths)

    def embedded(self, table: Tensor) -> Ragged:
        """Rows of `table` [V, d] in the place of ids, on its device."""
        return self.with_values(embedding(self.values.to(table.device), table))

    def means(self) -> Tensor:
        """[n, d] means of the vectors of each sequence; 0 for an empty one."""
        rows = torch.repeat_interleave(torch.arange(len(self)), self.lengths)
        sums = self.values.new_zeros(len(self), self.values.shape[1])
        sums.index_add_(0, rows.to(sums.device), self.values)
        return sums / self.lengths.clamp(min=1)[:, None].to(sums.device)

    def padded(self, fill: float = 0) -> Tensor:
        """[n, L, …] with `fill` after the end of each sequence; differentiable."""
        shape, (n, longest) = self.values.shape[1:], self._mask.shape
        out = self.values.new_full((n * longest, *shape), fill)
        out.index_copy_(0, self._places.to(out.device), self.values)
        return out.view(n, longest, *shape)

    def unpadded(self, padded: Tensor) -> Tensor:
        """[T, …] entries of `padded` [n, L, …] without the padding; differentiable."""
        return padded.flatten(0, 1)[self._places.to(padded.device)]

    def mask(self) -> Tensor:
        """[n, L] True for entries, False for padding."""
        return self._mask.to(self.values.device)

    @cached_property
    def _mask(self) -> Tensor:
        longest = int(self.lengths.max()) if len(self.lengths) else 0
        return torch.arange(longest)[None, :] < self.lengths[:, None]

    @cached_property
    def _places(self) -> Tensor:
        """[T] indices of the entries in [n · L]. Found on the CPU, since indexing by a mask waits for a GPU."""
        return self._mask.flatten().nonzero()[:, 0]

    @staticmethod
    def joined(parts: Sequence[Ragged]) -> Ragged:
        """Concatenation of the sequences of all parts."""
        return Ragged(
            torch.cat([part.values for part in parts]), torch.cat([part.lengths for part in parts])
        )

    @staticmethod
    def of(sequences: Sequence[Sequence[int]]) -> Ragged:
        flat = [v for s in sequences for v in s]
        return Ragged(
            torch.tensor(flat, dtype=torch.long),
            torch.tensor([len(s) for s in sequences], dtype=torch.long),
        )


@dataclass(frozen=True)
class Tokens:
    """Tokenised examples.

    Attributes:
        ids: token ids, special tokens included.
        types: [T] segment of each token: 0, or 1 in the second text of a pair.
        special: [T] True for tokens that the tokeniser added; they are neither privatised nor scored.
    """

    ids: Ragged
    types: Tensor
    special: Tensor

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def lengths(self) -> Tensor:
        return self.ids.lengths

    @property
    def digest(self) -> str:
        """SHA-256 of all that a model reads: lengths, ids and segments."""
        parts = (self.lengths, self.ids.values, self.types)
        return hashlib.sha256(b"".join(part.cpu().numpy().tobytes() for part in parts)).hexdigest()

    def digests(self) -> list[bytes]:
        """Digest of what a model reads of each text: its ids and segments."""
        both = torch.stack([self.ids.values, self.types.to(self.ids.values)], 1).cpu().numpy()
        parts = np.split(both, self.lengths.cumsum(0)[:-1].numpy())
        return [hashlib.blake2b(part.tobytes(), digest_size=16).digest() for part in parts]

    def take(self, rows: Tensor) -> Tokens:
        at = self.ids.positions(rows)
        return Tokens(
            Ragged(self.ids.values[at], self.lengths[rows]), self.types[at], self.special[at]
        )

    def with_ids(self, ids: Tensor) -> Tokens:
        """The same shape with other token ids [T]."""
        return Tokens(self.ids.with_values(ids), self.types, self.special)


POOL = 50
"""Batches per pool. Examples are sorted by length within a pool, which saves padding and still mixes the data."""


def length_bucketed(lengths: Tensor, size: int, rng: Generator) -> list[Tensor]:
    """Batches of rows of similar length, in random order; every row occurs once.

    Args:
        lengths: [n] tokens per example.
    """
    order = rng.permutation(len(lengths))
    batches = []
    for at in range(0, len(order), POOL * size):
        pool = order[at : at + POOL * size]
        pool = pool[np.argsort(lengths.numpy()[pool], kind="stable")]
        batches += [torch.from_numpy(pool[i : i + size]) for i in range(0, len(pool), size)]
    return [batches[i] for i in rng.permutation(len(batches))]


BATCH = 128
"""Examples in a batch for inference."""


def by_length(lengths: Tensor, size: int = BATCH) -> list[Tensor]:
    """Batches for inference: rows sorted by length.

    Examples:
        >>> import leakboard as lb
        >>> import torch
        >>> lb.by_length(torch.tensor([3, 1, 2]), size=2)
        [tensor([1, 2]), tensor([0])]
    """
    return list(torch.split(torch.argsort(lengths, stable=True), size))
