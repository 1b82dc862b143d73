"""Code shared by label attacks: matrices of messages with one row per example."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg import eigh

from leakboard.bench.contracts import (
    Channel,
    Collected,
    Goal,
    Guess,
    Ints,
    Knows,
    Measure,
    Memory,
    ThreatModel,
    Transcript,
)
from leakboard.bench.methods import Attack, Knowledge

CHANNELS = (
    Channel.ACTIVATIONS,
    Channel.RECOMPUTED,
    Channel.GRADIENTS,
    Channel.ADAPTER_GRADIENTS,
    Channel.LOGITS,
    Channel.LOGIT_GRADIENTS,
    Channel.REPRESENTATIONS,
    Channel.CUT_GRADIENTS,
)
"""Channels whose rows depend on single examples; vectors per token are averaged."""


UNTRAINED = Memory(capacity=64)
"""Cache of predictions from activations of the untrained model, which recur as the floor and in all cells of a task."""
ALL_PARTS = -1
"""Part number of the concatenation of all parts of one recipient."""


@dataclass(frozen=True)
class Matrix:
    """Vectors [n, d] float32 of rows of `train`, seen by one recipient, from one part at one moment."""

    channel: Channel
    moment: int | None
    round: int
    part: int
    recipient: str
    rows: Ints
    values: NDArray[np.float32]

    @property
    def untrained(self) -> bool:
        """Whether these are activations of the untrained model."""
        return self.channel == Channel.RECOMPUTED and self.moment == 0

    def minus(self, other: Matrix, part: int) -> Matrix:
        """Difference to a matrix of the same rows, as part number `part`."""
        return replace(self, part=part, values=self.values - other.values)

    def guess(self, measure: Measure, rows: Ints, values: NDArray[Any]) -> Guess:
        """A guess about the labels of `rows`."""
        return Guess(
            Goal.LABEL,
            self.channel,
            "train",
            rows,
            values,
            measure=measure,
            moment=self.moment,
            round=self.round,
            part=self.part,
            recipient=self.recipient,
        )


def evenly_spaced(moments: Sequence[int], n: int) -> list[int]:
    """n evenly spaced moments, including the first and the last; all if there are fewer."""
    places = np.linspace(0, len(moments) - 1, n).round().astype(int)
    return [moments[place] for place in dict.fromkeys(places)] if moments else []


def matrices(
    seen: Transcript, at_most: int | None = None, channels: Sequence[Channel] = CHANNELS
) -> Iterator[Matrix]:
    """Matrices of all moments of training, or of each round on channels without moments.

    Args:
        at_most: largest number of moments, evenly spaced.
    """
    for channel in channels:
        moments = seen.moments(channel)
        for moment in evenly_spaced(moments, at_most or len(moments)):
            for recipient, part in seen.parts(channel, moment):
                collected = seen.collect(channel, "train", None, part, moment, recipient)
                yield Matrix(channel, moment, 0, part, recipient, collected.rows, _means(collected))
        if not moments:
            yield from round_matrices(seen, channel)


def round_matrices(seen: Transcript, channel: Channel) -> Iterator[Matrix]:
    """A matrix of the recorded rows for each round, part and recipient."""
    for round in seen.rounds(channel):
        for recipient, part in seen.parts(channel):
            collected = seen.collect(channel, "train", round, part, None, recipient)
            yield Matrix(channel, None, round, part, recipient, collected.rows, _means(collected))


def concatenate_parts(parts: Iterable[Matrix]) -> Iterator[Matrix]:
    """Concatenations [n, parts × d] of the parts that one recipient saw of the same rows."""

    def place(matrix: Matrix) -> tuple[str, int, int, str]:
        return str(matrix.channel), matrix.moment or 0, matrix.round, matrix.recipient

    for _, same in groupby(sorted(parts, key=place), key=place):
        group = list(same)
        if len(group) > 1 and all(np.array_equal(group[0].rows, other.rows) for other in group):
            values = np.concatenate([matrix.values for matrix in group], axis=1)
            yield replace(group[0], part=ALL_PARTS, values=values)


def pool_rounds(seen: Transcript, channel: Channel) -> Iterator[Matrix]:
    """For each recipient [n, rounds × parts × d]: all that it saw of the recorded rows in all rounds of training.

    The matrix of each round and part is centred, and all have the same norm, so that none hides the others.
    """
    places = [
        (m.recipient, m.part, m.round)
        for m in seen.messages
        if m.channel == channel and m.split == "train" and m.moment is None
    ]
    for recipient in dict.fromkeys(place[0] for place in places):
        own = sorted({place for place in places if place[0] == recipient}, key=lambda p: p[2])
        read = [seen.collect(channel, "train", r, part, None, recipient) for _, part, r in own]
        last = read[-1].rows
        values = [_means(each) for each in read if np.array_equal(each.rows, last)]
        centred = [x - x.mean(0) for x in values]
        sizes = [max(float(np.linalg.norm(x)), np.finfo(np.float32).tiny) for x in centred]
        pooled = np.concatenate([x / size for x, size in zip(centred, sizes, strict=True)], axis=1)
        yield Matrix(channel, None, own[-1][2], ALL_PARTS, recipient, last, pooled)


def _means(collected: Collected) -> NDArray[np.float32]:
    values: NDArray[np.float32] = collected.values.astype(np.float32, copy=False)
    if collected.lengths is None:
        return values.reshape(len(values), -1)
    example = np.repeat(np.arange(len(collected.lengths)), collected.lengths)
    means = np.zeros((len(collected.lengths), values.shape[1]), np.float32)
    np.add.at(means, example, values)
    means /= np.maximum(collected.lengths, 1)[:, None]
    return means


def principal(x: NDArray[np.float32], k: int) -> NDArray[np.float32]:
    """[n, min(k, n, d)] first principal components of `x` [n, d]."""
    centred = x - x.mean(0)
    n, d = centred.shape
    # The smaller of the two Gram matrices has the spectrum of the thin SVD and is quicker.
    gram = centred @ centred.T if n <= d else centred.T @ centred
    size = len(gram)
    values, vectors = eigh(gram, subset_by_index=[max(0, size - k), size - 1])
    values, vectors = values[::-1], vectors[:, ::-1]
    if n <= d:  # left singular vectors, scaled by their singular values
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))
    return np.asarray(centred @ vectors)


class LabelAttack(Attack):
    """An attack that reads one matrix at a time; a subclass implements `read`."""

    threat: ClassVar[ThreatModel] = ThreatModel(goals={Goal.LABEL}, reads=CHANNELS)
    measure: ClassVar[Measure]
    at_most: ClassVar[int | None] = None
    """Largest number of moments; None for all."""

    @abstractmethod
    def read(self, x: NDArray[np.float32], classes: int, rng: Generator) -> NDArray[Any]:
        """[n] guesses for the rows of `x` [n, d], in the form of the attack's measure."""

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        return [
            matrix.guess(
                self.measure, matrix.rows, self.read(matrix.values, knowledge.classes, rng)
            )
            for matrix in matrices(seen, self.at_most)
        ]


class SupervisedLabelAttack(LabelAttack):
    """An attack that learns from the labels of other folds, which is pessimistic for the defense."""

    threat: ClassVar[ThreatModel] = ThreatModel(
        goals={Goal.LABEL}, reads=CHANNELS, knows={Knows.LABELS}
    )
    measure: ClassVar[Measure] = "balanced accuracy"
    joins: ClassVar[tuple[Channel, ...]] = ()
    """Channels on which it also reads the concatenation of all parts."""

    @abstractmethod
    def learn(
        self,
        x: NDArray[np.float32],
        y: Ints,
        unknown: NDArray[np.float32],
        rng: Generator,
    ) -> Ints:
        """[k] classes of the rows `unknown` [k, d].

        Args:
            x: [n, d] rows whose class is known.
            y: [n] their classes, counted from 0 without gaps; there are two of them or more.
        """

    def read(self, x: NDArray[np.float32], classes: int, rng: Generator) -> NDArray[Any]:
        raise NotImplementedError("this attack needs labels: see `learn`")

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        assert knowledge.labels is not None
        guesses = []
        for matrix in self.matrices_of(seen):
            labels = knowledge.labels[matrix.rows]
            hidden = labels < 0
            names, y = np.unique(labels[~hidden], return_inverse=True)
            values = np.full(int(hidden.sum()), names[0] if len(names) else 0)
            if len(names) > 1 and len(values):
                x = matrix.values
                learning = x[~hidden], y, x[hidden]
                if matrix.untrained:
                    values = names[
                        UNTRAINED.recall(
                            self._learning_key(learning), partial(self.learn, *learning)
                        )
                    ]
                else:
                    values = names[self.learn(*learning, rng)]
            guesses.append(matrix.guess(self.measure, matrix.rows[hidden], values))
        return guesses

    def matrices_of(self, seen: Transcript) -> Sequence[Matrix]:
        """The matrices that it learns from, one at a time."""
        parts = list(matrices(seen, self.at_most))
        return [*parts, *concatenate_parts(m for m in parts if m.channel in self.joins)]

    def _learning_key(self, arrays: Iterable[NDArray[Any]]) -> str:
        """Cache key: the attack, its parameters and all data that it learns from."""
        content = hashlib.sha256()
        for array in arrays:
            content.update(f"{array.dtype} {array.shape} ".encode() + array.tobytes())
        return f"{type(self)} {self!r} {content.hexdigest()}"
