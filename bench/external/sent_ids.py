"""Token ids as they were sent, in place of texts: those of a tokenised data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from leakboard.bench.backbones import NO_LABEL, Backbone, Ragged, Tokens
from leakboard.bench.contracts import Ints, LeakboardError, as_ints
from leakboard.bench.external.rows import IDS, LENGTHS, MASK
from leakboard.bench.tasks import Table

LEARNT = "labels"
PER_TOKEN = (IDS, MASK, LEARNT, LENGTHS)
"""Columns with a list in each row, as Trainers have them."""


@dataclass(frozen=True)
class SentIds:
    """Token ids of examples.

    Attributes:
        ids: of each example, without padding.
        learnt: of each example, True for tokens that are a label; all but the first without such a column.
    """

    ids: list[Ints]
    learnt: list[np.ndarray[Any, np.dtype[np.bool_]]] = field(default_factory=list)

    def take(self, rows: Ints) -> SentIds:
        learnt = [self.learnt[i] for i in rows] if self.learnt else []
        return SentIds([self.ids[i] for i in rows], learnt)

    def tokens(self, base: Backbone) -> Tokens:
        """These ids as tokens of a model. What is not learnt is a prompt.

        Raises:
            LeakboardError: an id is none of the model.
        """
        flat = torch.from_numpy(np.concatenate(self.ids))
        if int(flat.max()) >= len(base.embeddings) or int(flat.min()) < 0:
            raise LeakboardError(
                f"{IDS}: ids of '{base.name}' are from 0 to {len(base.embeddings) - 1}, got {int(flat.max())}"
            )
        types = torch.zeros_like(flat)
        if any(not each[1:].all() for each in self.learnt):
            types = torch.from_numpy(np.concatenate(self.learnt)).long()
        unknown = base.tokenizer.unk_token_id
        marks = torch.tensor([i for i in base.special_ids if i != unknown], dtype=flat.dtype)
        lengths = torch.tensor([len(each) for each in self.ids])
        return Tokens(Ragged(flat, lengths), types, torch.isin(flat, marks))


def with_ids(table: Table) -> tuple[Table, SentIds | None]:
    """A table with one row per example, and the token ids in it; None without any.

    Padding is removed by the column `attention_mask`. Packed rows are divided by `seq_lengths`, as trl has it. A column
    `labels` of lists says which tokens are learnt (−100: not).

    Raises:
        LeakboardError: lists have other lengths than the ids.
    """
    if IDS in table.columns:
        raise LeakboardError(
            f"{table.where}: '{IDS}' must hold lists of token ids; use a .jsonl or .parquet file, or pass them in Python"
        )
    if IDS not in table.nested:
        return table, None
    ids, learnt, owners = [], [], []
    for i, row in enumerate(table.nested[IDS]):
        where = f"{IDS}, {table.place(i)}"
        own = as_ints(row, where)
        shown = _numbers_of_tokens(table, MASK, i, len(own), 1) > 0
        is_learnt = _numbers_of_tokens(table, LEARNT, i, len(own), 0) != NO_LABEL
        ends = np.zeros(0, np.int64)
        if LENGTHS in table.nested:
            ends = np.cumsum(as_ints(table.nested[LENGTHS][i], f"{LENGTHS}, {table.place(i)}"))
        for part, has, is_label in zip(
            *(np.split(each, ends[:-1]) for each in (own, shown, is_learnt)), strict=True
        ):
            ids.append(part[has])
            learnt.append(is_label[has])
            owners.append(i)
    if not all(map(len, ids)):
        raise LeakboardError(f"{table.where}: '{IDS}' holds an example without a token")
    return table.take(owners), SentIds(ids, learnt if LEARNT in table.nested else [])


def _numbers_of_tokens(table: Table, name: str, row: int, length: int, default: int) -> Ints:
    """Numbers of each token of a row."""
    values = table.nested.get(name)
    if values is None:
        return np.full(length, default)
    return as_ints(values[row], f"{name}, {table.place(row)}", length=length)


def as_lists(values: Any) -> list[Any] | None:
    """A column whose entries are lists, arrays or tensors; None if they are single values."""
    if not hasattr(values, "__len__") or isinstance(values, str | bytes) or not len(values):
        return None
    entries = list(values)
    first = entries[0]
    listed = isinstance(first, Sequence | np.ndarray | torch.Tensor) and not isinstance(first, str)
    return entries if listed and np.ndim(first) == 1 else None
