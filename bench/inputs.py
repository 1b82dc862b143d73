"""A task as one cell sees it: drawn under its limit, tokenised, and the part that is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.backbones import Backbone
from bench.ragged import Tokens
from bench.record import Cell
from bench.seeds import Seeds
from bench.tasks import Task
from bench.types import Ints


@dataclass(frozen=True)
class Inputs:
    """Texts ready for a model.

    Attributes:
        tokens: of the splits that are used: train, the evaluated one, and auxiliary.
        recorded: per split the sorted rows whose messages are kept, the same for every defense.
    """

    task: Task
    tokens: dict[str, Tokens]
    recorded: dict[str, Ints]

    @staticmethod
    def identity(cell: Cell) -> tuple[Any, ...]:
        """Equal for two cells that see the same inputs."""
        train = (cell.train.max_length, cell.record.examples)
        return (cell.data_hash, cell.model_hash, cell.limit, cell.seed, cell.evaluate, *train)

    @classmethod
    def of(cls, cell: Cell, task: Task, backbone: Backbone) -> Inputs:
        seed = Seeds.of(cell.seed).data
        task = task.limited(cell.limit, seed)
        tokens = {
            name: backbone.encode(split.texts, split.pairs, cell.train.max_length)
            for name, split in task.splits.items()
            if name in ("train", cell.evaluate, "auxiliary")
        }
        rng = np.random.default_rng(seed)
        recorded = {
            name: np.sort(rng.permutation(len(tokens[name]))[: cell.record.examples])
            for name in ("train", cell.evaluate)
        }
        return cls(task, tokens, recorded)
