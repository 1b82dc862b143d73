"""Planting of canaries, and random membership of audited examples, in a task."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from string import ascii_lowercase

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from leakboard.bench.contracts import Ints, LeakboardError, Measure, Plant
from leakboard.bench.tasks.task import Span, Split, Task

AUTHORS, STRANGE = 1, 2
"""Random streams for the examples of authors and for candidates of random words."""
LETTERS, WORDS = 6, 3
"""Letters per random word, and words per text: few rare tokens, so that clipping leaves each a large gradient."""
DIGITS = 6
"""Digits of a secret, as in Carlini et al. 2019."""
CEILING = DIGITS * float(np.log2(10))
"""Maximum exposure, that of the likeliest secret, in bits: 19.93."""
_FEW = {0: "never planted", 1: "planted once"}
UNTUNED = "untuned"
"""View of leaks that are measured on the public model, before training."""
SLOT = "{digits}"
TRIES: dict[Measure, int] = {"extraction": 1, "beam extraction": 8, "sampled extraction": 100}
"""Number of secrets that an attack may print per sentence: greedily, by beam search, and by sampling."""
SAMPLES, LIKELY = 1000, 0.5
"""Number of sampled continuations from which the probability of a secret is estimated, and p: a secret counts as
extracted if `TRIES` samples contain it with probability p ((n, p)-discoverable extraction, Hayes et al. 2024)."""
CONTINUED = (24, 10)
"""Continuations of the beginning of a training text: tokens of each, and their number."""


def planted_view(copies: int) -> str:
    """Name of the view of canaries with a number of copies."""
    return _FEW.get(copies, f"planted {copies} times")


def copies_of(view: str) -> int:
    """Number of copies of canaries, from the name of their view."""
    known = {name: copies for copies, name in _FEW.items()}
    return known[view] if view in known else int(view.split()[1])


@dataclass(frozen=True)
class Canary:
    """A sentence with a secret, planted or held out.

    Attributes:
        form: index of its sentence in `Plant.canaries`.
        secret: from 0 to 999,999, written with six digits.
        copies: number of planted copies; 0 if held out.
    """

    form: int
    secret: int
    copies: int


@dataclass(frozen=True)
class Planted:
    """A task with planted texts, and the ground truth about them.

    Attributes:
        task: its `train` lacks the audited examples that are no members, and ends with member candidates of random
            words, then canaries.
        canaries: row of `train` → the span of its secret.
        audited: the examples whose membership is random, in random order.
        members: [n] whether each of these is in `train`.
        coins: [n] index of the coin that decided on it, one per example or per author.
        pool: `train` and the non-members; `rows` are the indices of `train` in it, `thrown` of the audited.
    """

    task: Task
    drawn: tuple[Canary, ...] = ()
    canaries: dict[int, Span] | None = None
    audited: Split | None = None
    members: NDArray[np.bool_] | None = None
    coins: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    pool: Split = field(default_factory=lambda: Split((), np.zeros(0, np.int64)))
    rows: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    thrown: Ints = field(default_factory=lambda: np.zeros(0, np.int64))


def plant_task(task: Task, plant: Plant | None, seed: int, shadow: int | None = None) -> Planted:
    """Draw secrets and coins, and change the split `train` accordingly.

    Args:
        shadow: index of a shadow model, which has its own coins but is otherwise equal.

    Raises:
        LeakboardError: canaries in a task with labels, more of them than there are texts, more
            examples or authors to audit, or authors whom the task does not name.
    """
    train = task.splits["train"]
    if plant is None:
        return Planted(task, pool=train, rows=np.arange(len(train)))
    if plant.canaries and task.objective != "language modelling":
        raise LeakboardError(
            f"plant.canaries: task '{task.name}' has labels, but canaries have none; "
            "use a language modelling task, such as dialogues"
        )
    rng = np.random.default_rng([seed, DIGITS])
    secrets = len(plant.canaries) * plant.each * sum(1 for number in plant.copies if number)
    if secrets > len(train):
        raise LeakboardError(
            f"plant.canaries: {secrets} canaries to plant in task '{task.name}', which trains on "
            f"{len(train)} texts. There must be fewer canaries than texts; lower plant.each, or raise the limit"
        )
    # A coin decides on an example, or on an author.
    units, called = np.arange(len(train)), "examples"
    if plant.per_author is not None:
        called, (train, units) = (
            "authors",
            _sample_authors(train, plant.per_author, task.name, seed),
        )
    n_units = len(np.unique(units))
    strange = _strange(task, plant.audit, seed) if plant.candidates == "strange" else None
    if strange is None and plant.audit > n_units:
        raise LeakboardError(
            f"plant.audit: {plant.audit} {called} to audit, and task '{task.name}' trains on "
            f"{n_units} only"
        )
    if strange is None:
        thrown = np.sort(rng.permutation(n_units)[: plant.audit])
    else:
        train, thrown = _concatenate(train, strange), n_units + np.arange(plant.audit)
        units = np.arange(len(train))
    heads = rng.random(plant.audit) < 0.5
    drawn = _draw_canaries(plant, rng)
    if shadow is not None:
        heads = _coins(plant.audit, seed, shadow)
    audited = np.flatnonzero(np.isin(units, thrown))
    coins = np.searchsorted(thrown, units[audited])
    members = heads[coins]
    kept = np.setdiff1d(np.arange(len(train)), audited[~members])
    texts, where = _sentences(plant, drawn, len(kept))
    pool = _append(train, texts, list(where.values()))
    rows = np.concatenate([kept, np.arange(len(train), len(pool))])
    splits = {**task.splits, "train": pool.take(rows)}
    changed, candidates = replace(task, splits=splits), train.take(audited)
    return Planted(changed, drawn, where, candidates, members, coins, pool, rows, audited)


def _sample_authors(train: Split, most: int, task: str, seed: int) -> tuple[Split, Ints]:
    """At most `most` random examples of each author, in order, and [n] the index of their author."""
    if train.authors is None:
        raise LeakboardError(
            f"plant.per_author: task '{task}' does not say who wrote its texts; use synthpai, or name the "
            "column of a task of your own with 'author: COLUMN'"
        )
    left, kept = Counter(dict.fromkeys(train.authors.tolist(), most)), list[int]()
    for row in np.random.default_rng([seed, AUTHORS]).permutation(len(train)):
        author = int(train.authors[row])
        if left[author]:
            left[author] -= 1
            kept.append(row)
    few = np.sort(kept)
    return train.take(few), np.unique(train.authors[few], return_inverse=True)[1]


def _strange(task: Task, n: int, seed: int) -> Split:
    """Candidates of random words that do not occur in the task, each word once, with random labels.

    They have no secrets, no author, and unknown attributes.
    """
    # Labels are drawn first, so that they do not depend on the texts.
    rng, train = np.random.default_rng([seed, STRANGE]), task.splits["train"]
    labels: Ints = rng.integers(max(1, len(task.labels)), size=n)
    known = {
        word
        for split in task.splits.values()
        for text in (*split.texts, *(split.pairs or ()))
        for word in text.lower().split()
    }
    drawn: dict[str, None] = {}  # in the order in which they are drawn, each once
    while len(drawn) < WORDS * n * (1 if train.pairs is None else 2):
        word = "".join(ascii_lowercase[i] for i in rng.integers(26, size=LETTERS))
        if word not in known:
            drawn[word] = None
    words = list(drawn)
    texts = tuple(" ".join(words[i : i + WORDS]) for i in range(0, len(words), WORDS))
    return Split(
        texts[:n],
        labels,
        None if train.pairs is None else texts[n:],
        {name: np.full(n, -1) for name in train.attributes},
        None if train.secrets is None else ((),) * n,
        None if train.authors is None else np.full(n, -1),
        None if train.targets is None else train.targets[rng.integers(len(train), size=n)],
    )


def _concatenate(split: Split, more: Split) -> Split:
    """Concatenate two splits with the same fields."""
    return Split(
        (*split.texts, *more.texts),
        np.concatenate([split.labels, more.labels]),
        None if split.pairs is None else (*split.pairs, *(more.pairs or ())),
        {
            name: np.concatenate([own, more.attributes[name]])
            for name, own in split.attributes.items()
        },
        None if split.secrets is None else (*split.secrets, *(more.secrets or ())),
        None
        if split.authors is None or more.authors is None
        else np.concatenate([split.authors, more.authors]),
        None
        if split.targets is None or more.targets is None
        else np.concatenate([split.targets, more.targets]),
    )


def _coins(n: int, seed: int, shadow: int) -> NDArray[np.bool_]:
    """[n] fair coins of a shadow model. Odd models have the opposite coins of the model before, so that each example is
    in exactly half of an even number of models."""
    members = np.random.default_rng([seed, DIGITS, 1 + shadow // 2]).random(n) < 0.5
    return members ^ (shadow % 2 == 1)


def canary_text(form: str, secret: int) -> tuple[str, Span]:
    """Text of a canary, and the span of its digits."""
    start = form.index(SLOT)
    span = Span(start, start + DIGITS, "canary")
    return form.replace(SLOT, f"{secret:0{DIGITS}d}"), span


def _draw_canaries(plant: Plant, rng: Generator) -> tuple[Canary, ...]:
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
        text, span = canary_text(plant.canaries[canary.form], canary.secret)
        for _ in range(canary.copies):
            where[first + len(texts)] = span
            texts.append(text)
    return texts, where


def _append(split: Split, texts: list[str], spans: list[Span]) -> Split:
    """Append texts to a split; training shuffles it in every epoch."""
    if not texts:
        return split
    marked = None if split.secrets is None else (*split.secrets, *((span,) for span in spans))
    zeros: Ints = np.zeros(len(texts), np.int64)
    labels = np.concatenate([split.labels, zeros])
    # All copies of a canary share a new author.
    authors = None if split.authors is None else np.concatenate([split.authors, zeros - 1])
    return Split((*split.texts, *texts), labels, None, {}, marked, authors)
