"""The context of one cell: its plan, its texts, and the public model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.random import Generator

from leakboard.bench.attacking import UntrainedCache, inversion
from leakboard.bench.backbones import Backbone, Ragged, Tokens, covered_tokens, offsets
from leakboard.bench.contracts import Cell, Ints, Memory, Progress, Seeds, digest, quietly
from leakboard.bench.exchange import Session, Tuned, Wire
from leakboard.bench.methods import Auxiliary, Defense
from leakboard.bench.running.plan import Plan, PlannedCell
from leakboard.bench.tasks import (
    CONTINUED,
    HELD_OUT,
    ON_PUBLIC,
    TASK_ITSELF,
    Planted,
    Split,
    Task,
    hold_out,
    plant_task,
    shares_source,
    train_on_public,
)

PublicTexts = Mapping[str, Auxiliary]
"""Public texts that an attack may ask for, by name: `OWN`, or the name of another task."""
_ENCODED: WeakKeyDictionary[Any, Memory] = WeakKeyDictionary()
"""Public texts by the tokeniser that encoded them, since trials of tuning and later runs of a process read the same."""
MAX_PROMPTS = 50
"""Secrets that attacks ask for, drawn from those in the recorded texts."""


@dataclass(frozen=True)
class Prompts:
    """Beginnings of n training texts, which an attack is given, and the secrets that follow, which it is not."""

    tokens: Tokens
    answers: Ragged


@dataclass(frozen=True)
class Inputs:
    """The task of a cell, drawn under its limit and tokenised.

    Attributes:
        tokens: by split; only `train` and the evaluated split.
        recorded: by split, the sorted rows whose messages are recorded, the same for every defense.
        public: public texts that an attack may ask for, by name.
        planted: canaries and coins planted in `task`, with the secrets that only the customer knows.
        candidates: examples of which the coins chose some for training; None without an audit.
        pool: tokens of `train` and of the examples that the coins keep out of it.
    """

    task: Task
    tokens: dict[str, Tokens]
    recorded: dict[str, Ints]
    public: PublicTexts
    planted: Planted
    candidates: Auxiliary | None = None
    pool: Tokens | None = None
    prompts: Prompts | None = None
    """Beginnings of recorded training texts, up to the personal data in them."""
    untrained: UntrainedCache = field(default_factory=dict)
    """Cache: activations of texts under the public model, shared by the cells of a task."""
    texts: dict[tuple[int, bool], dict[str, Auxiliary]] = field(default_factory=dict)
    """Cache: candidates for reidentification by split, by their number and `absent` (`candidate_texts`)."""
    masked: dict[tuple[Defense, str], Tokens | None] = field(default_factory=dict)
    """Cache: results of `as_trained`, shared by the defenses and the shadow models of a task."""

    @staticmethod
    def identity(cell: Cell) -> tuple[Any, ...]:
        """A key that is equal for cells with the same inputs; only its last entry depends on the audit's coins."""
        train = (cell.train.max_length, cell.record.examples)
        which = (cell.data_hash, cell.model_hash, cell.limit, cell.seed, cell.evaluate, cell.plant)
        return (*which, *train, cell.shadow)

    @classmethod
    def of(
        cls,
        cell: Cell,
        task: Task,
        backbone: Backbone,
        public: PublicTexts,
        secret: str = "",
        plants: Planted | None = None,
    ) -> Inputs:
        """Draws, plants and tokenises the texts of a cell.

        Args:
            secret: see `Seeds.of`.
            plants: what another process has drawn and planted.
        """
        plants, length = plants or draw_and_plant(cell, task, secret), cell.train.max_length
        pool = _encode(plants.pool, task, backbone, length)
        evaluated = _encode(plants.task.splits[cell.evaluate], task, backbone, length)
        return _add_prompts(_apply_coins(cell, plants, pool, evaluated, public), cell, backbone)

    def with_coins(self, cell: Cell, task: Task, secret: str = "") -> Inputs:
        """The inputs of a cell that differs only in its coins; nothing is tokenised again."""
        assert self.pool is not None
        plants = draw_and_plant(cell, task, secret)
        evaluated = self.tokens[cell.evaluate]
        inputs = _apply_coins(cell, plants, self.pool, evaluated, self.public)
        return replace(inputs, masked=self.masked)  # the candidates are the same

    def as_trained(
        self, known: Auxiliary, split: Split, defense: Defense, backbone: Backbone, length: int
    ) -> Auxiliary:
        """Adds to examples that an attacker knows how the defense would have trained on them.

        Args:
            known: the candidates, or public text of the task.
            split: the texts of these examples.
            length: most tokens of an example, as in training.
        """
        which = defense, "candidates" if known is self.candidates else "public"
        if which not in self.masked:
            changed = defense.as_trained(backbone, split)
            self.masked[which] = (
                None if changed is None else _encode(changed, self.task, backbone, length)
            )
        return replace(known, masked=self.masked[which])

    def candidate_texts(self, number: int, seed: int, absent: bool = False) -> dict[str, Auxiliary]:
        """By split, the recorded texts and public ones up to a number, each once, in random order.

        With more recorded texts there are more candidates. The order, which depends on the seed, must not tell which
        texts are recorded, and labels are left out.

        Args:
            absent: leave out a random half of the recorded texts.
        """
        if (number, absent) not in self.texts:
            rng = np.random.default_rng([seed, number, *[1] * absent])
            public = self.public.get(TASK_ITSELF)
            found = self.texts[number, absent] = {}
            for split, rows in self.recorded.items():
                parts = [self.tokens[split].take(torch.from_numpy(rows))]
                if public is not None:
                    parts.append(
                        public.tokens.take(torch.from_numpy(rng.permutation(len(public.tokens))))
                    )
                every = inversion.concatenate(parts)
                first = dict[tuple[int, ...], int]()
                for row, ids in enumerate(every.ids.sequences()):
                    first.setdefault(ids, row)
                own = sum(row < len(rows) for row in first.values())
                kept = np.array([*first.values()])
                if absent:
                    kept = np.delete(kept, rng.permutation(own)[: own // 2])
                kept = kept[: max(number, own)]
                drawn = every.take(torch.from_numpy(rng.permutation(kept)))
                found[split] = Auxiliary(drawn, np.zeros(0, np.int64))
        return self.texts[number, absent]


@dataclass(frozen=True)
class CellContext:
    """Everything that a cell is run on; the pairings of `planned` are the attacks that run."""

    planned: PlannedCell
    inputs: Inputs
    backbone: Backbone
    progress: Progress = quietly
    workers: int = 1
    """Cells that run at once on the machine."""
    secret: str = ""
    """Seed of the customer's secrets; nothing that an attack receives leads to it."""
    tuned: Tuned | None = None
    """The result of fine-tuning, once it is over; it answers queries to the customer's side."""
    answered: Mapping[str, Tokens] = field(default_factory=dict)
    """By split, prompts with the answers of the tuned model, if the requests for them were recorded."""
    export: Callable[[Any], None] | None = None
    """Given the predictions as lists, [n, C], if another process has the labels of the evaluated split."""
    isolated: bool = False
    """Whether attacks from outside run in processes of their own, where the truth is not in memory."""

    @property
    def cell(self) -> Cell:
        return self.planned.cell

    @property
    def classes(self) -> int:
        """Number of outputs of the head: of classes or labels, 1 for numbers, 0 for language modelling."""
        return self.inputs.task.outputs

    @property
    def seeds(self) -> Seeds:
        return Seeds.of(self.cell.seed, self.cell.shadow, self.secret)

    def session(self, wire: Wire, seeds: Seeds | None = None) -> Session:
        """The session in which the defense fine-tunes.

        Args:
            seeds: replace those of the cell.
        """
        train = self.inputs.task.splits["train"]
        return Session(
            train=self.inputs.tokens["train"],
            labels=torch.from_numpy(train.truth),
            classes=self.classes,
            backbone=self.backbone,
            cut=self.cell.cut,
            wire=wire,
            seeds=seeds or self.seeds,
            settings=self.cell.train,
            progress=self.progress,
            texts=train,
            public=public.tokens if (public := self.inputs.public.get(TASK_ITSELF)) else None,
            canaries=self.inputs.planted.canaries or {},
        )


def context_of(
    plan: Plan,
    planned: PlannedCell,
    progress: Progress = quietly,
    isolated: bool = False,
    plants: Planted | None = None,
    export: Callable[[Any], None] | None = None,
) -> CellContext:
    """The context of a single cell of a plan; its texts are tokenised here.

    Args:
        plants: see `Inputs.of`.
        export: see `CellContext`.
    """
    backbone = plan.backbones[planned.cell.model_hash]
    task = plan.tasks[planned.cell.data_hash]
    public = encode_public(planned.cell, task, backbone, plan.public)
    inputs = Inputs.of(planned.cell, task, backbone, public, plan.secret, plants)
    return CellContext(
        planned,
        inputs,
        backbone,
        progress,
        secret=plan.secret,
        export=export,
        isolated=isolated,
    )


def encode_public(
    cell: Cell, task: Task, backbone: Backbone, others: Mapping[str, Task]
) -> PublicTexts:
    """Tokenised public texts of a cell's task and of `others`, by name; the same for all seeds."""
    public, encoded = {}, _ENCODED.setdefault(backbone.tokenizer, Memory(capacity=4))
    length = cell.train.max_length

    def encode(split: Split) -> Tokens:
        content = repr((backbone.hash, split.texts, split.pairs, length, task.opened))
        return encoded.recall(digest(content), lambda _: _encode(split, task, backbone, length))

    if "auxiliary" in task.splits:
        own = task.splits["auxiliary"]
        public[TASK_ITSELF] = Auxiliary(encode(own), own.truth, own.attributes)
    for name, other in others.items():
        # Another task's labels and attributes mean nothing here.
        public[name] = Auxiliary(encode(public_texts(other, task)), np.zeros(0, np.int64))
    return public


def public_texts(other: Task, task: Task) -> Split:
    """The public texts of another task, without those from the same source as examples of this task."""
    split = other.split("auxiliary")
    return split.take(np.flatnonzero(~shares_source(split, list(task.splits.values()))))


def _encode(split: Split, task: Task, backbone: Backbone, max_length: int) -> Tokens:
    return backbone.encode(split.texts, split.pairs, max_length, task.opened)


def prompts_of(
    split: Split,
    tokens: Tokens,
    backbone: Backbone,
    rows: Ints,
    planted: Collection[int],
    rng: Generator,
) -> Prompts | None:
    """Prompts from some rows of a split for language modelling; None if its secrets are not marked.

    A secret is left out if the prompt already contains it, since the model could copy it; if it has more
    tokens than attacks generate; or if the text was truncated within it.

    Args:
        tokens: of the split, truncated as for training.
        rows: the texts that are searched for secrets.
        planted: rows with canaries, which other attacks look for.
    """
    if split.secrets is None:
        return None
    own = [row for row in rows.tolist() if row not in planted]
    texts = [split.texts[row] for row in own]
    spans: list[tuple[int, int, int]] = []
    places = offsets(backbone, texts, int(tokens.lengths.max())) if own else []
    for row, text, where in zip(own, texts, places, strict=True):
        for secret in split.secrets[row]:
            at = np.flatnonzero(covered_tokens(where, [secret]))
            if not 0 < len(at) <= CONTINUED[0] or not at[0] or where[at[-1], 1] < secret.end:
                continue
            if text[secret.start : secret.end] not in text[: secret.start]:
                spans.append((row, int(at[0]), int(at[-1]) + 1))
    chosen = [spans[i] for i in np.sort(rng.permutation(len(spans))[:MAX_PROMPTS])]
    before, behind = [], []
    for row, first, last in chosen:
        ids = tokens.ids.take(torch.tensor([row])).values.tolist()
        before.append(ids[:first])
        behind.append(ids[first:last])
    ids_before = Ragged.of(before)
    zeros = torch.zeros_like(ids_before.values)
    return Prompts(Tokens(ids_before, zeros, zeros.bool()), Ragged.of(behind))


def draw_and_plant(cell: Cell, task: Task, secret: str) -> Planted:
    """Draws the examples of a cell and plants canaries and coins among them."""
    seeds = Seeds.of(cell.seed, secret=secret)
    drawn = task.limited(cell.limit, seeds.data)
    if cell.evaluate == HELD_OUT:
        drawn = hold_out(drawn)
    if cell.evaluate == ON_PUBLIC:
        drawn = train_on_public(drawn, np.random.default_rng(seeds.data))
    return plant_task(drawn, cell.plant, seeds.planting, cell.shadow)


def _apply_coins(
    cell: Cell, plants: Planted, pool: Tokens, evaluated: Tokens, public: PublicTexts
) -> Inputs:
    """Inputs whose training examples, recorded rows and candidates follow from the coins."""
    # `train` last: it may be the evaluated split, too.
    tokens = {cell.evaluate: evaluated, "train": pool.take(torch.from_numpy(plants.rows))}
    rng = np.random.default_rng(Seeds.of(cell.seed).data)
    recorded = {
        name: np.sort(rng.permutation(len(tokens[name]))[: cell.record.examples])
        for name in ("train", cell.evaluate)
    }
    candidates = None
    if plants.audited is not None and len(plants.audited):
        thrown = pool.take(torch.from_numpy(plants.thrown))
        candidates = Auxiliary(thrown, plants.audited.truth)
    return Inputs(plants.task, tokens, recorded, public, plants, candidates, pool)


def _add_prompts(inputs: Inputs, cell: Cell, backbone: Backbone) -> Inputs:
    """Adds prompts if the task is language modelling and marks its secrets."""
    if inputs.task.objective != "language modelling":
        return inputs
    # A separate stream, so that the choice of prompts changes no other draw.
    rng = np.random.default_rng([Seeds.of(cell.seed).data, MAX_PROMPTS])
    train, canaries = inputs.task.splits["train"], inputs.planted.canaries or {}
    rows, tokens = inputs.recorded["train"], inputs.tokens["train"]
    return replace(inputs, prompts=prompts_of(train, tokens, backbone, rows, canaries, rng))
