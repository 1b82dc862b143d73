"""Tasks: splits of texts with labels, private attributes and secrets."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakboard.bench.contracts import Ints, LeakboardError, Objective, UtilityMetric

Targets: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True)
class Span:
    """A secret in a text: the characters from `start` up to `end`."""

    start: int
    end: int
    kind: str
    """Such as 'name' or 'phone'."""


def check_spans(texts: Sequence[str], spans: Sequence[Sequence[Span]], where: str) -> None:
    """Check that every text has spans, and that every span is a non-empty part of its text.

    Raises:
        LeakboardError: a span is invalid; the message names `where` and the row, counted from 1.
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
        labels: [n] class indices into `Task.labels`; 0 for other objectives.
        attributes: per private attribute [n] indices into `Task.attributes[name]`; −1 where unknown.
        secrets: spans of the secrets of each text, in order and disjoint; None if they are not marked.
        authors: [n] index of the author of each text, the same in all splits; None if unknown.
    """

    texts: tuple[str, ...]
    labels: Ints
    pairs: tuple[str, ...] | None = None
    attributes: dict[str, Ints] = field(default_factory=dict)
    secrets: tuple[tuple[Span, ...], ...] | None = None
    authors: Ints | None = None
    targets: Targets | None = None
    """[n] numbers, of which those of train have mean 0 and variance 1; or [n, C] 1 for labels that apply, else 0. None
    for classes and language modelling."""

    @property
    def truth(self) -> Ints | Targets:
        """What a model is trained to predict: the targets, or else the classes."""
        return self.labels if self.targets is None else self.targets

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
            None if self.targets is None else self.targets[rows],
        )


@dataclass(frozen=True)
class Task:
    """A dataset with the splits train, dev, usually test, and auxiliary (public text, disjoint from the others).

    Without labels the task is regression if its splits have targets, and else language modelling.
    """

    name: str
    labels: tuple[str, ...]
    splits: dict[str, Split]
    attributes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of the values of each private attribute."""
    source: str = ""
    """Origin of the data, for messages; equal content from different origins has the same hash."""
    notes: tuple[str, ...] = ()
    """Notes for the plan: removed rows, the choice of public text, duplicates."""
    utility: UtilityMetric | None = None
    """Metric of utility, if the user chose one."""
    own: bool = False
    """True for users' data, for which the metric depends on class frequencies unless `utility` is set."""

    @property
    def objective(self) -> Objective:
        """Training objective of the task."""
        for split in self.splits.values():
            if split.targets is not None:
                return "multilabel" if split.targets.ndim == 2 else "regression"
        return "classification" if self.labels else "language modelling"

    @property
    def outputs(self) -> int:
        """Number of outputs of the model's head; 0 for language modelling, which has none."""
        return 1 if self.objective == "regression" else len(self.labels)

    @property
    def opened(self) -> bool:
        """Whether texts start with a beginning-of-text token, see `Backbone.encode`."""
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
            if split.targets is not None:
                h.update(repr(("targets", split.targets.shape)).encode() + split.targets.tobytes())
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

        Public text is not limited, since it does not depend on the customer.
        """
        if limit is None:
            return self
        splits = dict(self.splits)
        for name in splits.keys() - {"auxiliary"}:
            split = splits[name]
            rng = np.random.default_rng([seed, len(split)])
            rows = np.sort(rng.permutation(len(split))[:limit])
            splits[name] = split.take(rows)
        return replace(self, splits=splits)
