"""What is planted in a customer's texts: canaries, and a coin for each example that is audited."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bench.contracts import Ints, LeakboardError, Measure, Plant
from bench.tasks.spans import Span
from bench.tasks.task import Split, Task

DIGITS = 6
"""Of a secret, as in Carlini et al. 2019."""
CEILING = DIGITS * float(np.log2(10))
"""Exposure of a secret that a model finds the likeliest of all, in bits: 19.93."""
_FEW = {0: "never planted", 1: "planted once"}
UNTUNED = "untuned"
"""The view of what the public model says, before anybody trained it."""
SLOT = "{digits}"
TRIES: dict[Measure, int] = {"extraction": 1, "beam extraction": 8}
"""How many secrets an attack may print for each sentence: greedily, and by beam search."""


def planted_view(copies: int) -> str:
    """How canaries are called by their number of copies."""
    return _FEW.get(copies, f"planted {copies} times")


def copies_of(view: str) -> int:
    """The number of copies of canaries that are called so."""
    known = {name: copies for copies, name in _FEW.items()}
    return known[view] if view in known else int(view.split()[1])


@dataclass(frozen=True)
class Canary:
    """A sentence that is planted, or not.

    Attributes:
        form: number of its sentence in `Plant.canaries`.
        secret: from 0 to 999,999; written with all six digits.
        copies: how often it was planted; 0 for one that was not.
    """

    form: int
    secret: int
    copies: int


@dataclass(frozen=True)
class Planted:
    """A task with what was planted, and what only the one who planted it knows.

    Attributes:
        task: its `train` holds the canaries last, and not the audited examples whose coin said so.
        canaries: where each stands: row of `train` → the characters of its secret.
        audited: the examples on which a coin was thrown, members first or not in no order.
        members: [n] whether each of these is in `train`.
        pool: `train` and what coins keep out of it; `rows` of it are `train`, `thrown` the audited.
    """

    task: Task
    drawn: tuple[Canary, ...] = ()
    canaries: dict[int, Span] | None = None
    audited: Split | None = None
    members: NDArray[np.bool_] | None = None
    pool: Split = field(default_factory=lambda: Split((), np.zeros(0, np.int64)))
    rows: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    thrown: Ints = field(default_factory=lambda: np.zeros(0, np.int64))


def planted(task: Task, plant: Plant | None, seed: int, shadow: int | None = None) -> Planted:
    """Draws secrets and coins, and changes the split `train` accordingly.

    Args:
        shadow: with the coins of an attacker's own model of this number, and everything else alike.

    Raises:
        LeakboardError: canaries in a task with labels, more of them than there are texts, or more
            examples to audit.
    """
    train = task.splits["train"]
    if plant is None:
        return Planted(task, pool=train, rows=np.arange(len(train)))
    if plant.canaries and task.objective != "language modelling":
        raise LeakboardError(
            f"plant.canaries: task '{task.name}' has labels, and canaries have none; "
            "name a task of language modelling, such as dialogues"
        )
    rng = np.random.default_rng([seed, DIGITS])
    secrets = len(plant.canaries) * plant.each * sum(1 for number in plant.copies if number)
    if secrets > len(train):
        raise LeakboardError(
            f"plant.canaries: {secrets} canaries to plant in task '{task.name}', which trains on "
            f"{len(train)} texts: a model that sees more of what is planted than of its own texts "
            "says nothing of these; lower plant.each, or raise the limit"
        )
    if plant.audit > len(train):
        raise LeakboardError(
            f"plant.audit: {plant.audit} examples to audit, and task '{task.name}' trains on "
            f"{len(train)} only"
        )
    order = rng.permutation(len(train))
    audited = np.sort(order[: plant.audit])
    members = rng.random(plant.audit) < 0.5
    drawn = _drawn(plant, rng)
    if shadow is not None:
        members = _coins(plant.audit, seed, shadow)
    kept = np.setdiff1d(np.arange(len(train)), audited[~members])
    texts, where = _sentences(plant, drawn, len(kept))
    pool = _with(train, texts, list(where.values()))
    rows = np.concatenate([kept, np.arange(len(train), len(pool))])
    splits = {**task.splits, "train": pool.take(rows)}
    changed, candidates = replace(task, splits=splits), train.take(audited)
    return Planted(changed, drawn, where, candidates, members, pool, rows, audited)


def _coins(n: int, seed: int, shadow: int) -> NDArray[np.bool_]:
    """[n] fair coins of an attacker's own model. Those of an odd one are the other way round than those
    of the one before, so that each example is in half of any even number of them."""
    members = np.random.default_rng([seed, DIGITS, 1 + shadow // 2]).random(n) < 0.5
    return members ^ (shadow % 2 == 1)


def written(form: str, secret: int) -> tuple[str, Span]:
    """A canary's text, and where in it the digits stand."""
    start = form.index(SLOT)
    span = Span(start, start + DIGITS, "canary")
    return form.replace(SLOT, f"{secret:0{DIGITS}d}"), span


def _drawn(plant: Plant, rng: np.random.Generator) -> tuple[Canary, ...]:
    """All canaries; no secret occurs twice in one sentence."""
    found = []
    for form in range(len(plant.canaries)):
        counts = np.repeat([*plant.copies, 0], [plant.each] * len(plant.copies) + [plant.unseen])
        secrets = rng.choice(10**DIGITS, len(counts), replace=False)
        found += [Canary(form, int(s), int(n)) for s, n in zip(secrets, counts, strict=True)]
    return tuple(found)


def _sentences(
    plant: Plant, drawn: tuple[Canary, ...], first: int
) -> tuple[list[str], dict[int, Span]]:
    texts: list[str] = []
    where = {}
    for canary in drawn:
        text, span = written(plant.canaries[canary.form], canary.secret)
        for _ in range(canary.copies):
            where[first + len(texts)] = span
            texts.append(text)
    return texts, where


def _with(split: Split, texts: list[str], spans: list[Span]) -> Split:
    """The split with more texts behind it; the order of training is drawn anew in every epoch."""
    if not texts:
        return split
    marked = None if split.secrets is None else (*split.secrets, *((span,) for span in spans))
    zeros: Ints = np.zeros(len(texts), np.int64)
    return Split((*split.texts, *texts), np.concatenate([split.labels, zeros]), None, {}, marked)
