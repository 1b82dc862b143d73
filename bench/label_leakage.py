"""What label attacks share: which matrices there are to look at, one row per example."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bench.types import (
    Attack,
    Channel,
    Collected,
    Goal,
    Guess,
    Ints,
    Knowledge,
    Knows,
    Measure,
    ThreatModel,
    Transcript,
)

CHANNELS = (
    Channel.ACTIVATIONS,
    Channel.GRADIENTS,
    Channel.ADAPTER_GRADIENTS,
    Channel.LOGITS,
    Channel.LOGIT_GRADIENTS,
    Channel.REPRESENTATIONS,
    Channel.CUT_GRADIENTS,
)
"""Channels whose rows depend on single examples; of vectors per token the mean is taken."""


@dataclass(frozen=True)
class Matrix:
    """What one recipient saw of one part at one moment: rows of `train`, [n, d] float32."""

    channel: Channel
    moment: int | None
    round: int
    part: int
    recipient: str
    rows: Ints
    values: NDArray[np.float32]

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


def matrices(seen: Transcript) -> Iterator[Matrix]:
    """All there is to look at: the moments of training, or each round where a channel has none."""
    for channel in CHANNELS:
        moments = seen.moments(channel)
        for moment in moments:
            for recipient, part in seen.parts(channel, moment):
                found = seen.collect(channel, "train", None, part, moment, recipient)
                yield Matrix(channel, moment, 0, part, recipient, found.rows, _means(found))
        for round in [] if moments else seen.rounds(channel):
            for recipient, part in seen.parts(channel):
                found = seen.collect(channel, "train", round, part, None, recipient)
                yield Matrix(channel, None, round, part, recipient, found.rows, _means(found))


def _means(found: Collected) -> NDArray[np.float32]:
    values: NDArray[np.float32] = found.values.astype(np.float32, copy=False)
    if found.lengths is None:
        return values.reshape(len(values), -1)
    example = np.repeat(np.arange(len(found.lengths)), found.lengths)
    means = np.zeros((len(found.lengths), values.shape[1]), np.float32)
    np.add.at(means, example, values)
    means /= np.maximum(found.lengths, 1)[:, None]
    return means


class LabelAttack(Attack):
    """An attack that looks at one matrix at a time; a subclass writes `read`."""

    threat: ClassVar[ThreatModel] = ThreatModel(
        goals=frozenset({Goal.LABEL}), reads=frozenset(CHANNELS)
    )
    measure: ClassVar[Measure]

    @abstractmethod
    def read(self, x: NDArray[np.float32], classes: int, rng: np.random.Generator) -> NDArray[Any]:
        """[n] what the rows of `x` [n, d] tell, by the attack's measure."""

    def guess(
        self, seen: Transcript, knowledge: Knowledge, rng: np.random.Generator
    ) -> list[Guess]:
        return [
            matrix.guess(
                self.measure, matrix.rows, self.read(matrix.values, knowledge.classes, rng)
            )
            for matrix in matrices(seen)
        ]


class ToldAttack(LabelAttack):
    """A classifier that was told the labels of other examples; a subclass writes `classify`.

    It is asked once per fold and guesses about the rows of that fold.
    """

    threat: ClassVar[ThreatModel] = ThreatModel(
        goals=frozenset({Goal.LABEL}),
        reads=frozenset(CHANNELS),
        knows=frozenset({Knows.LABELS}),
    )
    measure: ClassVar[Measure] = "balanced accuracy"
    pooled: ClassVar[bool] = False
    """One classifier for all moments, instead of one for each."""

    @abstractmethod
    def classify(
        self, x: NDArray[np.float32], y: Ints, rest: NDArray[np.float32], seed: int
    ) -> Ints:
        """[r] classes of `rest` [r, d], learnt from `x` [n, d] of classes `y` [n], at least two."""

    def read(self, x: NDArray[np.float32], classes: int, rng: np.random.Generator) -> NDArray[Any]:
        raise NotImplementedError("it reads nothing without labels")

    def guess(
        self, seen: Transcript, knowledge: Knowledge, rng: np.random.Generator
    ) -> list[Guess]:
        labels = knowledge.labels
        assert labels is not None
        together: dict[tuple[object, ...], list[Matrix]] = {}
        for i, matrix in enumerate(matrices(seen)):
            where = (matrix.channel, matrix.part, matrix.recipient)
            together.setdefault(where if self.pooled else (i,), []).append(matrix)
        guesses = []
        for group in together.values():
            x = np.concatenate([matrix.values for matrix in group])
            rows = np.concatenate([matrix.rows for matrix in group])
            told = labels[rows] >= 0
            seed = int(rng.integers(2**31))
            found = np.zeros(len(rows), np.int64)
            y = labels[rows][told]
            if len(np.unique(y)) > 1 and not told.all():
                found[~told] = self.classify(x[told], y, x[~told], seed)
            elif len(y):  # one class is all it knows of
                found[:] = y[0]
            ends = np.cumsum([len(matrix.rows) for matrix in group])
            for matrix, end in zip(group, ends, strict=True):
                mine = np.arange(end - len(matrix.rows), end)
                mine = mine[~told[mine]]
                if len(mine):
                    guesses.append(matrix.guess(self.measure, rows[mine], found[mine]))
        return guesses
