"""Tasks: texts with labels and private attributes, from a generator, a folder, the hub or a user's file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from leakboard.bench.contracts import Ints, LeakboardError, Objective


@dataclass(frozen=True)
class Span:
    """A secret in a text: the characters from `start` up to `end`."""

    start: int
    end: int
    kind: str
    """Such as 'name' or 'phone'."""


def check_spans(texts: Sequence[str], spans: Sequence[Sequence[Span]], where: str) -> None:
    """Whether every text has its spans, and every span lies in its text and holds something.

    Raises:
        LeakboardError: one does not; `where` and the row are named, the first row being 1.
    """
    if len(texts) != len(spans):
        raise LeakboardError(f"{where}: {len(spans)} rows of spans for {len(texts)} texts")
    for row, (text, own) in enumerate(zip(texts, spans, strict=True), start=1):
        for span in own:
            if not 0 <= span.start < span.end <= len(text):
                raise LeakboardError(
                    f"{where}, data row {row}: the span [{span.start}, {span.end}) of kind "
                    f"'{span.kind}' is not in its text of {len(text)} characters"
                )


@dataclass(frozen=True)
class Split:
    """Examples in order.

    Attributes:
        texts: n texts.
        pairs: the second text of each example, or None where the task has single texts.
        labels: [n] class indices into `Task.labels`.
        attributes: per private attribute [n] indices into `Task.attributes[name]`; −1 where unknown.
        secrets: of each text its secrets, in order and apart from each other; None where no one has
            marked them.
        authors: [n] a number for whoever wrote each, the same in all splits; None where nobody tells.
    """

    texts: tuple[str, ...]
    labels: Ints
    pairs: tuple[str, ...] | None = None
    attributes: dict[str, Ints] = field(default_factory=dict)
    secrets: tuple[tuple[Span, ...], ...] | None = None
    authors: Ints | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: Ints) -> Split:
        return Split(
            tuple(self.texts[i] for i in rows),
            self.labels[rows],
            None if self.pairs is None else tuple(self.pairs[i] for i in rows),
            {name: values[rows] for name, values in self.attributes.items()},
            None if self.secrets is None else tuple(self.secrets[i] for i in rows),
            None if self.authors is None else self.authors[rows],
        )


@dataclass(frozen=True)
class Task:
    """A dataset with the splits train, dev, usually test, and auxiliary (public text, disjoint from the rest).

    Without labels it is one of language modelling; the labels of its splits are then all 0.
    """

    name: str
    labels: tuple[str, ...]
    splits: dict[str, Split]
    attributes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of the values of each private attribute."""
    source: str = ""
    """Where the data came from, for people; two sources of the same content have the same hash."""

    @property
    def objective(self) -> Objective:
        """What a model learns on it."""
        return "classification" if self.labels else "language modelling"

    @property
    def opened(self) -> bool:
        """Whether its texts are read from the token that begins a text on, see `Backbone.encode`."""
        return self.objective == "language modelling"

    @cached_property
    def hash(self) -> str:
        """SHA-256 over names, texts, labels, attributes and authors of all splits."""
        h = hashlib.sha256()
        h.update(repr((self.labels, sorted(self.attributes.items()))).encode())
        for name, split in sorted(self.splits.items()):
            h.update(repr((name, split.texts, split.pairs, split.labels.tolist())).encode())
            for attribute, values in sorted(split.attributes.items()):
                h.update(repr((attribute, values.tolist())).encode())
            if split.secrets is not None:
                spans = [[(s.start, s.end, s.kind) for s in own] for own in split.secrets]
                h.update(repr(spans).encode())
            if split.authors is not None:
                h.update(repr(("authors", split.authors.tolist())).encode())
        return h.hexdigest()

    def split(self, name: str) -> Split:
        """A split by name.

        Raises:
            LeakboardError: the task has no such split.
        """
        if name not in self.splits:
            raise LeakboardError(
                f"task '{self.name}' has no split '{name}'; it has {', '.join(sorted(self.splits))}"
            )
        return self.splits[name]

    def limited(self, limit: int | None, seed: int) -> Task:
        """At most `limit` examples of each split, drawn with `seed`; their order is kept.

        Public text stays whole: how much of it there is does not depend on the customer.
        """
        if limit is None:
            return self
        splits = dict(self.splits)
        for name in splits.keys() - {"auxiliary"}:
            split = splits[name]
            rng = np.random.default_rng([seed, len(split)])
            rows = np.sort(rng.permutation(len(split))[:limit])
            splits[name] = split.take(rows)
        return Task(self.name, self.labels, splits, self.attributes, self.source)
