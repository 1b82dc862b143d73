"""A task as one cell sees it: drawn under its limit, tokenised, and the part that is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from leakboard.bench.attacking import Known
from leakboard.bench.backbones import Backbone, Tokens
from leakboard.bench.contracts import Cell, Ints, Seeds
from leakboard.bench.methods import Auxiliary, Defense
from leakboard.bench.running.prompts import PROMPTS, Prompts, prompts_of
from leakboard.bench.tasks import HELD_OUT, OWN, Planted, Split, Task, held_out, planted, shared

Public = Mapping[str, Auxiliary]
"""By name the public texts that an attack may ask for: `OWN`, or another task's."""


@dataclass(frozen=True)
class Inputs:
    """Texts ready for a model.

    Attributes:
        tokens: of the splits that are used: train and the evaluated one.
        recorded: per split the sorted rows whose messages are kept, the same for every defense.
        public: by name, the public texts that an attack may ask for.
        planted: what was planted in `task`, and what only the one who planted it knows.
        candidates: the examples of which some were trained on; None where no coin was thrown.
        pool: the tokens of `train` and of what coins keep out of it.
    """

    task: Task
    tokens: dict[str, Tokens]
    recorded: dict[str, Ints]
    public: Public
    planted: Planted
    candidates: Auxiliary | None = None
    pool: Tokens | None = None
    prompts: Prompts | None = None
    """Beginnings of recorded training texts up to personal data that stand in them."""
    untrained: Known = field(default_factory=dict)
    """Activations of texts under the public model, which cells of one task need again and again."""
    masked: dict[tuple[Defense, str], Tokens | None] = field(default_factory=dict)
    """What `as_trained` has found, which the defenses and the shadow models of a task need again."""

    @staticmethod
    def identity(cell: Cell) -> tuple[Any, ...]:
        """Equal for two cells that see the same inputs; where only the last differs, other coins fell."""
        train = (cell.train.max_length, cell.record.examples)
        which = (cell.data_hash, cell.model_hash, cell.limit, cell.seed, cell.evaluate, cell.plant)
        return (*which, *train, cell.shadow)

    @classmethod
    def of(
        cls, cell: Cell, task: Task, backbone: Backbone, public: Public, secret: str = ""
    ) -> Inputs:
        """What a cell needs of its task.

        Args:
            secret: see `Seeds.of`.
        """
        plants, length = _planted(cell, task, secret), cell.train.max_length
        pool = _encoded(plants.pool, task, backbone, length)
        evaluated = _encoded(plants.task.splits[cell.evaluate], task, backbone, length)
        return _prompted(_fallen(cell, plants, pool, evaluated, public), cell, backbone)

    def with_coins(self, cell: Cell, task: Task, secret: str = "") -> Inputs:
        """Those of a cell for which only other coins fell; nothing is tokenised again."""
        assert self.pool is not None
        plants = _planted(cell, task, secret)
        fallen = _fallen(cell, plants, self.pool, self.tokens[cell.evaluate], self.public)
        return replace(fallen, masked=self.masked)  # the candidates are the same ones

    def as_trained(
        self, told: Auxiliary, split: Split, defense: Defense, backbone: Backbone, length: int
    ) -> Auxiliary:
        """What an attacker is told, and how a defense that it knows would have trained on it.

        Args:
            split: the texts of what it is told: the candidates, or public text of the task's own.
            length: tokens of an example, as in training.
        """
        which = defense, "candidates" if told is self.candidates else "public"
        if which not in self.masked:
            changed = defense.as_trained(backbone, split)
            self.masked[which] = (
                None if changed is None else _encoded(changed, self.task, backbone, length)
            )
        return replace(told, masked=self.masked[which])


def _planted(cell: Cell, task: Task, secret: str) -> Planted:
    seeds = Seeds.of(cell.seed, secret=secret)
    drawn = task.limited(cell.limit, seeds.data)
    if cell.evaluate == HELD_OUT:
        drawn = held_out(drawn)
    return planted(drawn, cell.plant, seeds.planting, cell.shadow)


def _fallen(cell: Cell, plants: Planted, pool: Tokens, evaluated: Tokens, public: Public) -> Inputs:
    """What is trained on and recorded once the coins have fallen."""
    # `train` last: it may be what utility is measured on, too.
    tokens = {cell.evaluate: evaluated, "train": pool.take(torch.from_numpy(plants.rows))}
    rng = np.random.default_rng(Seeds.of(cell.seed).data)
    recorded = {
        name: np.sort(rng.permutation(len(tokens[name]))[: cell.record.examples])
        for name in ("train", cell.evaluate)
    }
    candidates = None
    if plants.audited is not None and len(plants.audited):
        thrown = pool.take(torch.from_numpy(plants.thrown))
        candidates = Auxiliary(thrown, plants.audited.labels)
    return Inputs(plants.task, tokens, recorded, public, plants, candidates, pool)


def _prompted(inputs: Inputs, cell: Cell, backbone: Backbone) -> Inputs:
    """With prompts, where a task of language modelling marks its secrets."""
    if inputs.task.objective != "language modelling":
        return inputs
    # A stream of its own, so that what is asked for does not change what else is drawn.
    rng = np.random.default_rng([Seeds.of(cell.seed).data, PROMPTS])
    train, canaries = inputs.task.splits["train"], inputs.planted.canaries or {}
    rows, tokens = inputs.recorded["train"], inputs.tokens["train"]
    return replace(inputs, prompts=prompts_of(train, tokens, backbone, rows, canaries, rng))


def public_of(cell: Cell, task: Task, backbone: Backbone, others: Mapping[str, Task]) -> Public:
    """The public texts of a cell's task, and those of `others`, by name; alike for all its seeds."""
    found, max_length = {}, cell.train.max_length
    if "auxiliary" in task.splits:
        own = task.splits["auxiliary"]
        found[OWN] = Auxiliary(
            _encoded(own, task, backbone, max_length), own.labels, own.attributes
        )
    for name, other in others.items():
        tokens = _encoded(public_texts(other, task), task, backbone, max_length)
        # Another task's labels and attributes mean nothing here.
        found[name] = Auxiliary(tokens, np.zeros(0, np.int64))
    return found


def public_texts(other: Task, task: Task) -> Split:
    """The public texts of another task, less those of one source with examples of the task itself."""
    split = other.split("auxiliary")
    return split.take(np.flatnonzero(~shared(split, list(task.splits.values()))))


def _encoded(split: Split, task: Task, backbone: Backbone, max_length: int) -> Tokens:
    return backbone.encode(split.texts, split.pairs, max_length, task.opened)
