"""Which examples come from one source, so that none is part customer's and part public text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from leakboard.bench.contracts import Ints, LeakboardError
from leakboard.bench.tasks.table import fingerprint, normal
from leakboard.bench.tasks.task import Split, Task

RUN = 8
"""Words in a row that two texts hardly share by chance: one was cut from the other, or both from a third."""
FACTOR, OFFSET = np.uint64(6364136223846793005), np.uint64(1442695040888963407)
"""Of the polynomial by which words in a row become one number, modulo 2^64."""

Flags = NDArray[np.bool_]
Numbers = NDArray[np.uint64]


def public_rows(train: Split, private: Sequence[Split], share: float) -> Flags:
    """Which examples of `train` become public text: whole sources, drawn by the hash of their texts.

    Examples are of one source where texts of theirs agree, or have `RUN` words in a row in common. A
    shorter text that is part of others goes where all of these go, and to the customer where they part:
    so no public text is part of a customer's, and a customer's in a public one only where it is in
    another of the customer's, too. Sources of `private` examples are the customer's.

    Args:
        share: of the sources, counted by their examples; one at least is drawn if there is any.

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
    # What contains a part is no part itself, or something that decides for both contains it.
    torn = inner[~public[outer] & ~part[outer]]
    public |= part & ~kept
    public[torn] = False
    return public[source[:n]]


def shares_source(public: Split, private: Sequence[Split]) -> Flags:
    """[n] which public examples are of one source with private ones, see `public_rows`."""
    source = _Runs([public, *private]).sources()
    return np.isin(source[: len(public)], source[len(public) :])


def _draw_sources(source: Ints, kept: Flags, train: Split, rows: Ints, share: float) -> list[int]:
    """The sources of some rows that become public: as many as fit, in the order of their hashes."""
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
    """Words in a row, in the texts of all examples, as numbers."""

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
        """[n] a number for each example, the same for those that are linked, directly or by others."""
        found = [self._whole(size) for size in range(1, RUN)] + [self._of(RUN)]
        row = self._rows[np.concatenate([texts for _, texts in found])]
        runs = np.concatenate([numbers for numbers, _ in found])
        _, run, times = np.unique(runs, return_inverse=True, return_counts=True)
        often = times > 1
        row, run = row[often[run]], (np.cumsum(often) - 1)[run[often[run]]]
        nodes = self.examples + int(often.sum())
        graph = coo_array((np.ones(len(row), bool), (row, self.examples + run)), (nodes, nodes))
        return np.asarray(connected_components(graph, directed=False)[1][: self.examples], np.int64)

    def parts(self, source: Ints) -> tuple[Ints, Ints]:
        """Pairs of sources: one of single short texts, which agree, and one with that text in a longer one."""
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
        """All runs of so many words, and the texts in which they stand."""
        text = np.repeat(np.arange(len(self._lengths)), self._lengths)
        last = max(0, len(text) - size + 1)
        inside = np.flatnonzero(text[:last] == text[len(text) - last :])
        return self._numbers(inside, size), text[inside]

    def _whole(self, size: int) -> tuple[Numbers, Ints]:
        """The texts of so many words, each as one run."""
        texts = np.flatnonzero(self._lengths == size)
        return self._numbers(self._starts[texts], size), texts

    def _numbers(self, starts: Ints, size: int) -> Numbers:
        found = np.full(len(starts), size, np.uint64)
        for offset in range(size):
            found = found * FACTOR + self._ids[starts + offset] + OFFSET
        return found


HELD_OUT = "held-out"
"""The name of that part, where a suite evaluates on it."""
SHARE = 0.2
"""Of the training examples; drawn are whole sources, so that no text there was cut from one that is trained on."""


def hold_out(task: Task) -> Task:
    """The task with a fifth of its training split as the split `held-out`, and the rest to train on.

    Raises:
        LeakboardError: its training examples are all of one source, or one part lacks a class.
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
