"""Identification of the examples of a recorded pass, and of complete rounds."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np
import torch
from torch import Tensor

from leakboard.bench.backbones import Ragged
from leakboard.bench.contracts import (
    Channel,
    Ints,
    LeakboardError,
    Message,
    Transcript,
    as_ints,
    form,
)
from leakboard.bench.external.token_layout import TokenLayout

IDS, MASK = "input_ids", "attention_mask"
"""Names of these inputs in transformers."""
LENGTHS = "seq_lengths"
"""Name of the column in which trl keeps the lengths of packed examples."""
UNKNOWN = -1
"""Row number of examples that are not recorded."""


class ExampleRows:
    """Lookup of examples by their ids, which counts how often each occurred.

    Equal examples take turns, so that each occurs once per round.

    Args:
        limit: the maximum number of recorded examples.
        keys: of all examples in the order of the truth; None numbers them in order of appearance.
    """

    def __init__(self, limit: int, keys: Sequence[bytes] | None = None) -> None:
        self._limit, self._fixed = limit, keys is not None
        self._rows: dict[bytes, list[int]] = {}
        for row, key in enumerate(keys or ()):
            self._rows.setdefault(key, []).append(row)
        self._times: Counter[int] = Counter()
        self.recorded: Ints = np.arange(limit)
        if keys is not None:
            order = np.random.default_rng(0).permutation(len(keys))
            self.recorded = np.sort(order[:limit])

    def find(self, keys: Iterable[bytes]) -> tuple[Ints, Ints]:
        """[B] row and round of each example of a batch; `UNKNOWN` for examples that are not recorded."""
        found = []
        for key in keys:
            if key not in self._rows and not self._fixed and len(self._rows) < self._limit:
                self._rows[key] = [len(self._rows)]
            own = self._rows.get(key, [UNKNOWN])
            found.append(min(own, key=self._times.__getitem__))
            self._times[found[-1]] += 1
        return self._counted(found)

    def keys(self) -> dict[int, bytes]:
        """The key of each known row."""
        return {row: key for key, rows in self._rows.items() for row in rows}

    def count(self, rows: Ints) -> tuple[Ints, Ints]:
        """As `find`, for known rows."""
        self._times.update(rows.tolist())
        return self._counted(rows.tolist())

    def _counted(self, rows: Sequence[int]) -> tuple[Ints, Ints]:
        rounds, later = [], Counter(rows)
        for row in rows:
            rounds.append(self._times[row] - later[row])
            later[row] -= 1
        return np.array(rows, np.int64), np.array(rounds, np.int64)


def batch_keys(inputs: Tensor, layout: TokenLayout | None) -> list[bytes]:
    """Hashes that identify the examples of a batch by their inputs [B, …] without padding."""
    values = inputs.detach().cpu()
    values = values.float() if values.is_floating_point() else values.long()
    rows = list(values) if layout is None else layout.take(values)
    if isinstance(rows, Ragged):
        rows = list(torch.split(rows.values, rows.lengths.tolist()))
    return [_key(row.numpy()) for row in rows]


def example_keys(examples: Any) -> list[bytes]:
    """Hashes that identify the examples of a tokenised training set.

    Args:
        examples: sequences of ids, as lists, arrays or tensors; the output of a tokeniser; or a dataset with a
            column of ids. An attention mask marks padding. Packed examples are told apart by a column of lengths.

    Raises:
        LeakboardError: the type is not supported, or there are no examples.
    """
    ids, masks = examples, None
    if isinstance(examples, Mapping) or hasattr(examples, "column_names"):
        names = list(getattr(examples, "column_names", None) or examples)
        if IDS not in names:
            raise LeakboardError(
                f"examples: no column '{IDS}'; it has {', '.join(map(str, names))}"
            )
        ids, masks = examples[IDS], examples[MASK] if MASK in names else None
        if LENGTHS in names:
            return _packed_keys(ids, examples[LENGTHS])
    if isinstance(ids, str | bytes) or not hasattr(ids, "__len__"):
        raise LeakboardError(
            "examples must be sequences of token ids, the output of a tokeniser, or a dataset with a "
            f"column '{IDS}', got {form(examples)}"
        )
    if not len(ids):
        raise LeakboardError("examples: there are none")
    masks = repeat(None) if masks is None else _entries(masks)
    return [
        _key(_unpadded(row, mask, f"examples[{i}]"))
        for i, (row, mask) in enumerate(zip(_entries(ids), masks, strict=False))
    ]


def _packed_keys(packs: Any, lengths: Any) -> list[bytes]:
    """Hashes of the examples that trl packed into rows."""
    keys = []
    for i, (row, own) in enumerate(zip(_entries(packs), _entries(lengths), strict=True)):
        ids = as_ints(row, f"examples[{i}]")
        ends = np.cumsum(as_ints(own, f"{LENGTHS} of examples[{i}]"))
        if not len(ends) or ends[-1] != len(ids):
            raise LeakboardError(f"{LENGTHS} of examples[{i}]: expected a sum of {len(ids)} tokens")
        keys += [_key(part) for part in np.split(ids, ends[:-1])]
    return keys


def _entries(column: Any) -> Iterable[Any]:
    """Entries of a column or dataset; some datasets support indexing only."""
    return column if hasattr(column, "__iter__") else (column[i] for i in range(len(column)))


def _unpadded(ids: Any, mask: Any, name: str) -> Ints:
    if isinstance(ids, Mapping) and IDS in ids:
        ids, mask = ids[IDS], ids.get(MASK)
    found = as_ints(ids, name)
    if mask is None:
        return found
    kept: Ints = found[as_ints(mask, f"{MASK} of {name}", length=len(found)) > 0]
    return kept


def _key(values: Any) -> bytes:
    whole = np.ascontiguousarray(values)
    return hashlib.blake2b(whole.tobytes(), digest_size=16).digest()


def order_digest(keys: Iterable[bytes]) -> str:
    """One digest of the keys of examples in their order, which tells nothing of a single one."""
    return hashlib.blake2b(b"".join(keys), digest_size=16).hexdigest()


def ids_digest(examples: Iterable[Ints | Sequence[int]]) -> str:
    """As `order_digest`, of the token ids of examples without padding."""
    return order_digest(_key(np.asarray(ids, np.int64)) for ids in examples)


def recorded_rows(seen: Transcript, split: str) -> Ints:
    """Rows of a split that messages are about, without those of single moments."""
    parts = [m.rows for m in seen.messages if m.split == split and m.moment is None]
    return np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.int64)


def complete_rounds(seen: Transcript) -> tuple[Transcript, int]:
    """The rounds in which every recorded example occurs once on each channel.

    The first round defines the recorded examples. An incomplete round and all rounds after it are left out.

    Returns:
        The complete rounds, and the number of examples that were left out.
    """
    rows: dict[tuple[str, int], dict[Channel, list[Ints]]] = {}
    for m in seen.messages:
        channels = rows.setdefault((m.split, m.round), {})
        if m.channel not in seen.dropped:
            channels.setdefault(m.channel, []).append(m.rows)
    whole: dict[tuple[str, int], Ints] = {}
    out = 0
    for split in dict.fromkeys(split for split, _ in rows):
        first = _rows_on_all_channels(rows[split, min(r for s, r in rows if s == split)])
        ended = False
        for r in sorted(r for s, r in rows if s == split):
            here = _rows_on_all_channels(rows[split, r])
            ended = ended or not np.isin(first, here).all()
            whole[split, r] = first[:0] if ended else first
            every = [part for parts in rows[split, r].values() for part in parts]
            out += len(np.setdiff1d(np.concatenate([first[:0], *every]), whole[split, r]))
    kept = (_select_rows(m, whole[m.split, m.round]) for m in seen.messages)
    return replace(seen, messages=tuple(m for m in kept if m is not None)), out


def without_rows(seen: Transcript, split: str, rows: Ints) -> Transcript:
    """The messages about other rows of a split."""
    kept = [
        m if m.split != split else _select_rows(m, np.setdiff1d(m.rows, rows))
        for m in seen.messages
    ]
    return replace(seen, messages=tuple(m for m in kept if m is not None))


def _rows_on_all_channels(channels: Mapping[Channel, Sequence[Ints]]) -> Ints:
    """The rows that occur on every channel."""
    found: Ints | None = None
    for parts in channels.values():
        own = np.unique(np.concatenate(parts))
        found = own if found is None else np.intersect1d(found, own)
    return np.zeros(0, np.int64) if found is None else found


def _select_rows(message: Message, rows: Ints) -> Message | None:
    """A message restricted to some rows; None if no row remains."""
    stays = np.isin(message.rows, rows)
    if stays.all():
        return message
    if not stays.any():
        return None
    lengths, entries = message.lengths, stays
    if lengths is not None:
        entries, lengths = np.repeat(stays, lengths), lengths[stays]
    values = message.values[entries]
    return replace(message, rows=message.rows[stays], values=values, lengths=lengths)
