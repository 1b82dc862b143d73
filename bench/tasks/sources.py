"""Grouping of examples by source, so that no source is divided between customer, public and held-out text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from leakboard.bench.contracts import Ints, LeakboardError
from leakboard.bench.tasks.table import fingerprint, normal
from leakboard.bench.tasks.task import Split, Task

RUN = 8
"""Length of a run of words that unrelated texts hardly share by chance."""
FACTOR, OFFSET = np.uint64(6364136223846793005), np.uint64(1442695040888963407)
"""Coefficients of the polynomial hash of a run of words, modulo 2^64."""

Flags = NDArray[np.bool_]
Numbers = NDArray[np.uint64]


def public_rows(train: Split, private: Sequence[Split], share: float) -> Flags:
    """Select examples of `train` that become public text: whole sources, drawn by the hash of their texts.

    Examples belong to one source if their texts are equal or share `RUN` words in a row. A shorter text that is
    part of others follows them; if they are divided, it goes to the customer. So no public text is part of a
    customer's text. Sources of `private` examples belong to the customer.

    Args:
        share: of the sources, counted by examples; at least one is drawn if there is any.

    Returns:
        [n] flags.
    """
    runs = _Runs([train, *private])
    source, n = runs.sources(), len(train)
    inner, outer = runs.parts(source)
    number = source.max(initial=-1) + 1
    kept, part = np.zeros(number, bool), np.zeros(number, bool)
    kept[source[n:]], part[inner] = True, True
    whole = np.flatnonzero(~part[source[:n]])
    public = np.zeros(number, bool)
    public[_draw_sources(source[whole], kept, train, whole, share)] = True
    # A text that contains a part is not a part itself, or another text contains both.
    torn = inner[~public[outer] & ~part[outer]]
    public |= part & ~kept
    public[torn] = False
    return public[source[:n]]


def shares_source(public: Split, private: Sequence[Split]) -> Flags:
    """[n] True for public examples that share a source with private ones, see `public_rows`."""
    source = _Runs([public, *private]).sources()
    return np.isin(source[: len(public)], source[len(public) :])


def _draw_sources(source: Ints, kept: Flags, train: Split, rows: Ints, share: float) -> list[int]:
    """Sources that become public: as many as fit into the share, in the order of their hashes."""
    first, sizes = dict[int, int](), np.bincount(source, minlength=len(kept))
    for at, row in zip(source.tolist(), rows.tolist(), strict=True):
        if not kept[at]:
            mark = fingerprint(train.texts[row], "auxiliary")
            first[at] = min(mark, first.get(at, mark))
    order = sorted(first, key=lambda at: (first[at], at))
    left, found = round(share * len(rows)), list[int]()
    for at in order:
        if sizes[at] <= left:
            left -= sizes[at]
            found.append(at)
    return found or order[:1]


class _Runs:
    """Hashes of runs of words in the texts of all examples."""

    def __init__(self, splits: Sequence[Split]) -> None:
        ids, lengths, rows = list[int](), list[int](), list[int]()
        self.examples = 0
        for split in splits:
            for texts in (split.texts, split.pairs or ()):
                for row, text in enumerate(texts, start=self.examples):
                    own = normal(text).split()
                    ids += map(hash, own)
                    lengths.append(len(own))
                    rows.append(row)
            self.examples += len(split)
        self._lengths, self._rows = np.array(lengths, np.int64), np.array(rows, np.int64)
        self._ids = np.array(ids, np.int64).view(np.uint64)
        self._starts = np.cumsum(self._lengths) - self._lengths

    def sources(self) -> Ints:
        """[n] source of each example; examples that are linked directly or indirectly share it."""
        found = [self._whole(size) for size in range(1, RUN)] + [self._of(RUN)]
        row = self._rows[np.concatenate([texts for _, texts in found])]
        runs = np.concatenate([numbers for numbers, _ in found])
        _, run, times = np.unique(runs, return_inverse=True, return_counts=True)
        often = times > 1
        row, run = row[often[run]], (np.cumsum(often) - 1)[run[often[run]]]
        nodes = self.examples + int(often.sum())
        from scipy.sparse import coo_array  # slow to import
        from scipy.sparse.csgraph import connected_components

        graph = coo_array((np.ones(len(row), bool), (row, self.examples + run)), (nodes, nodes))
        return np.asarray(connected_components(graph, directed=False)[1][: self.examples], np.int64)

    def parts(self, source: Ints) -> tuple[Ints, Ints]:
        """Pairs of sources: one of a short text, and one with a longer text that contains it."""
        inner, outer = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        alone = np.bincount(self._rows, minlength=self.examples)[self._rows] == 1
        for size in range(1, RUN):
            runs, texts = self._whole(size)
            known, first = np.unique(runs[alone[texts]], return_index=True)
            if not len(known):
                continue
            short = source[self._rows[texts[alone[texts]][first]]]
            runs, texts = self._of(size)
            place = np.searchsorted(known, runs).clip(max=len(known) - 1)
            inside = (known[place] == runs) & (self._lengths[texts] > size)
            inner.append(short[place[inside]])
            outer.append(source[self._rows[texts[inside]]])
        return np.concatenate(inner), np.concatenate(outer)

    def _of(self, size: int) -> tuple[Numbers, Ints]:
        """All runs of `size` words, and the texts that contain them."""
        text = np.repeat(np.arange(len(self._lengths)), self._lengths)
        last = max(0, len(text) - size + 1)
        inside = np.flatnonzero(text[:last] == text[len(text) - last :])
        return self._numbers(inside, size), text[inside]

    def _whole(self, size: int) -> tuple[Numbers, Ints]:
        """Texts of exactly `size` words, each as one run."""
        texts = np.flatnonzero(self._lengths == size)
        return self._numbers(self._starts[texts], size), texts

    def _numbers(self, starts: Ints, size: int) -> Numbers:
        found = np.full(len(starts), size, np.uint64)
        for offset in range(size):
            found = found * FACTOR + self._ids[starts + offset] + OFFSET
        return found


HELD_OUT = "held-out"
"""Name of the held-out split."""
SHARE = 0.2
"""Share of the training examples that is held out, as whole sources."""


def hold_out(task: Task) -> Task:
    """Move a fifth of the training split to the split `held-out`, on which settings are selected.

    Raises:
        LeakboardError: all training examples are of one source, or one part lacks a class.
    """
    train = task.splits["train"]
    apart = public_rows(train, [], SHARE)
    kept, chosen = train.take(np.flatnonzero(~apart)), train.take(np.flatnonzero(apart))
    if not len(kept) or not len(chosen):
        raise LeakboardError(
            f"task '{task.name}': its {len(train)} training examples are of one source, and none "
            "can be held out to choose settings on"
        )
    if missing := {*train.labels.tolist()} - ({*kept.labels.tolist()} & {*chosen.labels.tolist()}):
        names = ", ".join(task.labels[label] for label in sorted(missing))
        raise LeakboardError(
            f"task '{task.name}': {len(chosen)} of {len(train)} training examples are held out to choose "
            f"settings on, and {names} is in one of the two parts only; take more examples"
        )
    return replace(task, splits={**task.splits, "train": kept, HELD_OUT: chosen})
