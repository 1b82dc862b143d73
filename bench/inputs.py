"""A task as one cell sees it: drawn under its limit, tokenised, and the part that is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.backbones import Backbone
from bench.planting import Planted, planted
from bench.ragged import Tokens
from bench.record import Cell
from bench.seeds import Seeds
from bench.tasks import Split, Task
from bench.tasks.catalogue import OWN
from bench.tasks.table import normal
from bench.types import Auxiliary, Ints


@dataclass(frozen=True)
class Inputs:
    """Texts ready for a model.

    Attributes:
        tokens: of the splits that are used: train and the evaluated one.
        recorded: per split the sorted rows whose messages are kept, the same for every defense.
        public: by name, the public texts that an attack may ask for.
        planted: what was planted in `task`, and what only the one who planted it knows.
        candidates: the examples of which some were trained on; None where no coin was thrown.
    """

    task: Task
    tokens: dict[str, Tokens]
    recorded: dict[str, Ints]
    public: dict[str, Auxiliary]
    planted: Planted
    candidates: Auxiliary | None = None

    @staticmethod
    def identity(cell: Cell) -> tuple[Any, ...]:
        """Equal for two cells that see the same inputs."""
        train = (cell.train.max_length, cell.record.examples)
        which = (cell.data_hash, cell.model_hash, cell.limit, cell.seed, cell.evaluate, cell.plant)
        return (*which, *train)

    @classmethod
    def of(
        cls, cell: Cell, task: Task, backbone: Backbone, others: Mapping[str, Task] | None = None
    ) -> Inputs:
        """What a cell needs of its task, and of `others`, by name, the public texts."""
        seed, whole = Seeds.of(cell.seed).data, task
        plants = planted(whole.limited(cell.limit, seed), cell.plant, seed)
        task = plants.task

        def encoded(split: Split) -> Tokens:
            opened = task.objective == "language modelling"
            return backbone.encode(split.texts, split.pairs, cell.train.max_length, opened)

        tokens = {name: encoded(task.splits[name]) for name in ("train", cell.evaluate)}
        public = {}
        if "auxiliary" in task.splits:
            own = task.splits["auxiliary"]
            public[OWN] = Auxiliary(encoded(own), own.labels, own.attributes)
        for name, other in (others or {}).items():
            foreign = public_texts(other.limited(cell.limit, seed), whole)
            # Another task's labels and attributes mean nothing here.
            public[name] = Auxiliary(encoded(foreign), np.zeros(0, np.int64))
        rng = np.random.default_rng(seed)
        recorded = {
            name: np.sort(rng.permutation(len(tokens[name]))[: cell.record.examples])
            for name in ("train", cell.evaluate)
        }
        candidates, audited = None, plants.audited
        if audited is not None and len(audited):
            candidates = Auxiliary(encoded(audited), audited.labels)
        return cls(task, tokens, recorded, public, plants, candidates)


def public_texts(other: Task, task: Task) -> Split:
    """The public texts of another task, less those that the task itself has, too."""
    split = other.split("auxiliary")
    private = {normal(text) for own in task.splits.values() for text in own.texts}
    return split.take(np.flatnonzero([normal(text) not in private for text in split.texts]))
