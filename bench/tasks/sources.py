"""Grouping of examples by source, so that no source is divided between customer, public and held-out text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from leakboard.bench.contracts import Ints, LeakboardError
from leakboard.bench.tasks.table import fingerprint, normal
from leakboard.bench.tasks.task import Split, Task

RUN = 8
"""Length of a run of words that unrelated texts hardly share by chance."""
COMMON, COMMON_LEAST = 0.01, 20
"""A run of words is a form if more than this share of a split's examples contain it, and more than this number:
a system prompt, a template, or one question about every text. Forms do not link examples to one source."""
FACTOR, OFFSET = np.uint64(6364136223846793005), np.uint64(1442695040888963407)
"""Coefficients of the polynomial hash of a run of words, modulo 2^64."""

Flags = NDArray[np.bool_]
Numbers = NDArray[np.uint64]


@dataclass(frozen=True)
class PublicRows:
    """Examples drawn as public text.

    Attributes:
        flags: [n] True for the drawn examples of the training split.
        forms: True if some runs of words were forms, see `COMMON`.
        linked: True if runs of `RUN` words linked examples; otherwise only equal examples are one source.
    """

    flags: Flags
    forms: bool
    linked: bool = True


def public_rows(train: Split, private: Sequence[Split], share: float) -> Flags:
    """[n] True for the examples of `train` that are drawn; see `draw_public`, but forms link examples, too."""
    runs = _Runs([train, *private])
    return _draw_flags(runs, runs.sources(forms=True), train, share)


def draw_public(
    train: Split,
    private: Sequence[Split],
    share: float,
    staying: Flags | None = None,
) -> PublicRows:
    """Draw examples of `train` that become public text: whole sources, by the hash of their texts.

    Examples belong to one source if they are equal, or if their texts are equal or share `RUN` words in a row that
    are not a form (see `COMMON`). A shorter text that is part of others follows them; if they are divided, it goes to
    the customer. Sources of `private` examples belong to the customer. If no source can be drawn, only equal
    examples are one source.

    Args:
        share: of the sources, counted by examples; at least one is drawn if one leaves half of the examples to
            the customer.
        staying: [n] True for examples whose sources also belong to the customer.
    """
    runs = _Runs([train, *private])
    flags = _draw_flags(runs, runs.sources(), train, share, staying)
    if flags.any():
        return PublicRows(flags, runs.forms)
    flags = _draw_flags(runs, runs.equal(), train, share, staying)
    return PublicRows(flags, runs.forms, linked=False)


def shares_source(public: Split, private: Sequence[Split]) -> Flags:
    """[n] True for public examples that share a source with private ones, see `draw_public`."""
    source = _Runs([public, *private]).sources()
    return np.isin(source[: len(public)], source[len(public) :])


def _draw_flags(
    runs: _Runs, source: Ints, train: Split, share: float, staying: Flags | None = None
) -> Flags:
    n = len(train)
    inner, outer = runs.parts(source)
    number = source.max(initial=-1) + 1
    kept, part = np.zeros(number, bool), np.zeros(number, bool)
    kept[source[n:]], part[inner] = True, True
    if staying is not None:
        kept[source[:n][staying]] = True
    whole = np.flatnonzero(~part[source[:n]])
    public = np.zeros(number, bool)
    public[_draw_sources(source[whole], kept, train, whole, share)] = True
    # A text that contains a part is not a part itself, or another text contains both.
    torn = inner[~public[outer] & ~part[outer]]
    public |= part & ~kept
    public[torn] = False
    flags: Flags = public[source[:n]]
    return flags


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
    small = [at for at in order if 2 * sizes[at] <= len(rows)]
    return found or sorted(small, key=sizes.__getitem__)[:1]


class _Runs:
    """Hashes of runs of words in the texts of all examples."""

    def __init__(self, splits: Sequence[Split]) -> None:
        ids, lengths, rows = list[int](), list[int](), list[int]()
        whole = np.zeros(sum(map(len, splits)), np.uint64)
        self.bounds, self.examples, self.forms = list[tuple[int, int]](), 0, False
        for split in splits:
            for texts in (split.texts, split.pairs or ()):
                for row, text in enumerate(texts, start=self.examples):
                    own = text.lower().split()
                    ids += map(hash, own)
                    lengths.append(len(own))
                    rows.append(row)
                hashes = np.fromiter((hash(normal(text)) for text in texts), np.int64, len(texts))
                at = slice(self.examples, self.examples + len(texts))
                whole[at] = whole[at] * FACTOR + hashes.view(np.uint64) + OFFSET
            self.bounds.append((self.examples, self.examples + len(split)))
            self.examples += len(split)
        self._equal: Ints = np.unique(whole, return_inverse=True)[1]
        self._lengths, self._rows = np.array(lengths, np.int64), np.array(rows, np.int64)
        self._ids = np.array(ids, np.int64).view(np.uint64)
        self._starts = np.cumsum(self._lengths) - self._lengths

    def sources(self, forms: bool = False) -> Ints:
        """[n] source of each example; examples that are linked directly or indirectly share it.

        Args:
            forms: True if forms link examples, too.
        """
        found = [self._whole(size) for size in range(1, RUN)] + [self._of(RUN)]
        row = self._rows[np.concatenate([texts for _, texts in found])]
        runs = np.concatenate([numbers for numbers, _ in found])
        _, run, times = np.unique(runs, return_inverse=True, return_counts=True)
        linking = times > 1
        if not forms:
            linking &= ~self._common(row, run, times)
        row, run = row[linking[run]], (np.cumsum(linking) - 1)[run[linking[run]]]
        row = np.concatenate([row, np.arange(self.examples)])
        run = np.concatenate([run, int(linking.sum()) + self._equal])
        nodes = self.examples + int(run.max(initial=-1)) + 1
        from scipy.sparse import coo_array  # slow to import
        from scipy.sparse.csgraph import connected_components

        graph = coo_array((np.ones(len(row), bool), (row, self.examples + run)), (nodes, nodes))
        return np.asarray(connected_components(graph, directed=False)[1][: self.examples], np.int64)

    def equal(self) -> Ints:
        """[n] source of each example if only equal examples share it."""
        return self._equal

    def _common(self, row: Ints, run: Ints, times: Ints) -> Flags:
        """True for runs that are forms."""
        forms = np.zeros(len(times), bool)
        often = (times > COMMON_LEAST)[run]
        held = np.unique(run[often] * self.examples + row[often])  # once in each example
        run, row = np.divmod(held, max(1, self.examples))
        for start, end in self.bounds:
            own = run[(start <= row) & (row < end)]
            forms |= np.bincount(own, minlength=len(times)) > max(
                COMMON_LEAST, COMMON * (end - start)
            )
        self.forms |= bool(forms.any())
        return forms

    def parts(self, source: Ints) -> tuple[Ints, Ints]:
        """Pairs of sources: one of a short text, and one with a longer text that contains it."""
        inner, outer = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        is_single = np.bincount(self._rows, minlength=self.examples)[self._rows] == 1
        for size in range(1, RUN):
            runs, texts = self._whole(size)
            known, first = np.unique(runs[is_single[texts]], return_index=True)
            if not len(known):
                continue
            short = source[self._rows[texts[is_single[texts]][first]]]
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
ON_PUBLIC = "public"
"""Name of the split of public texts on which settings are selected without private examples."""
SHARE = 0.2
"""Share of the training examples that is held out, as whole sources."""


def hold_out(task: Task) -> Task:
    """Move a fifth of the training split to the split `held-out`, on which settings are selected.

    Raises:
        LeakboardError: all training examples are of one source, or one part lacks a class.
    """
    train = task.splits["train"]
    is_held_out = public_rows(train, [], SHARE)
    if not is_held_out.any():
        is_held_out = draw_public(train, [], SHARE).flags
    kept, chosen = train.take(np.flatnonzero(~is_held_out)), train.take(np.flatnonzero(is_held_out))
    if not len(kept) or not len(chosen):
        raise LeakboardError(
            f"task '{task.name}': its {len(train)} training examples come from one source, so none "
            "can be held out to choose settings on"
        )
    if missing := {*train.labels.tolist()} - ({*kept.labels.tolist()} & {*chosen.labels.tolist()}):
        names = ", ".join(task.labels[label] for label in sorted(missing))
        raise LeakboardError(
            f"task '{task.name}': {len(chosen)} of {len(train)} training examples are held out to choose "
            f"settings on, and {names} is in only one of the two parts; use more examples"
        )
    return replace(task, splits={**task.splits, "train": kept, HELD_OUT: chosen})


def train_on_public(task: Task, rng: Generator) -> Task:
    """Put public texts in place of the training examples, as many or fewer, with a fifth as the split `public`.

    Raises:
        LeakboardError: the task has no public texts with labels; see also `hold_out`.
    """
    if reason := no_public_training(task):
        raise LeakboardError(reason)
    public, n = task.splits["auxiliary"], len(task.splits["train"])
    drawn = public.take(np.sort(rng.permutation(len(public))[:n]))
    found = hold_out(replace(task, splits={**task.splits, "train": drawn}))
    return replace(found, splits={**found.splits, ON_PUBLIC: found.splits[HELD_OUT]})


def no_public_training(task: Task) -> str | None:
    """Reason why no model of the task can be trained on its public texts, or None."""
    public = task.splits.get("auxiliary")
    if public is None:
        return f"task '{task.name}' has no public texts"
    predicted = public.labels if public.targets is None else public.targets
    if task.objective != "language modelling" and len(np.unique(predicted)) < 2:
        return f"the public texts of task '{task.name}' have no labels"
    return None
