"""Attacks let loose on a transcript. They see it and their knowledge; the truth stays here."""

from __future__ import annotations

import functools
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from leakboard.bench.attacking import before_training
from leakboard.bench.contracts import (
    Channel,
    Claim,
    Goal,
    Guess,
    Ints,
    Leak,
    Memory,
    MissingExtra,
    Transcript,
    digest,
)
from leakboard.bench.exchange import Diverged
from leakboard.bench.methods import Attack, Knowledge, Labelled, Silent, spec_of
from leakboard.bench.running.failures import failed, isolated, out_of_memory, told
from leakboard.bench.running.grants import knowledge_for
from leakboard.bench.running.pairing import Pairing
from leakboard.bench.running.scene import Scene
from leakboard.bench.scoring import (
    Truth,
    score,
    score_canaries,
    score_continuations,
    score_members,
    score_over_training,
)

TOGETHER = {Goal.MEMORISATION: score_canaries, Goal.MEMBERSHIP: score_members}
"""How guesses are scored that are no class, beside those about labels."""
BY_MEASURE = {"continuation": score_continuations}
"""And those that are of a kind of their own."""


FLOORS: WeakKeyDictionary[type[Attack], Memory] = WeakKeyDictionary()
"""What each attack reads of labels from the untrained model: cells of one seed attack the same batches."""
ALONE = ("accuracy", "bag")
"""Measures of guesses that are scored one at a time."""


TRUNCATED = (
    "the transcript exceeds the recording budget by {:.0f} MB; "
    "lower record.examples or raise record.megabytes in the suite"
)


@dataclass(frozen=True)
class Untrained:
    """What would have been seen of the same texts at the same moments under the untrained model.

    Attributes:
        name: of the model, the labels of `train` and all of what would have been seen.
    """

    seen: Transcript
    name: str

    @classmethod
    def of(cls, seen: Transcript, labels: Ints, model: str) -> Untrained:
        before, content = before_training(seen), hashlib.sha256(model.encode() + labels.tobytes())
        for m in before.messages:
            where = (m.channel, m.round, m.part, m.recipient, m.step, m.moment, m.values.shape)
            content.update(repr(where).encode() + m.rows.tobytes() + m.values.tobytes())
        return cls(before, content.hexdigest())

    def only(self, channels: frozenset[Channel]) -> Untrained:
        return replace(self, seen=self.seen.only(channels))


def attack_all(scene: Scene, seen: Transcript, claim: Claim | None = None) -> list[Leak]:
    """Lets every paired attack loose on a transcript and scores what it guesses.

    Args:
        claim: of the defense, if it makes any.
    """
    inputs, pairings = scene.inputs, scene.planned.pairings
    answers = inputs.prompts.answers if inputs.prompts else None
    truth = Truth(
        *(inputs.tokens, inputs.task.splits, inputs.recorded, inputs.planted, claim, answers),
        prompted=not inputs.task.labels,
    )
    before = Untrained.of(seen, _labels(truth), scene.cell.model_hash)
    leaks: list[Leak] = []
    for pairing in scene.progress("attacking", pairings, len(pairings)):
        reads = pairing.attack.threat.reads or set(Channel)
        if reads & seen.dropped.keys():
            leaks += failed(pairing, "skipped", TRUNCATED.format(seen.dropped_bytes / 1e6))
        elif pairing.goals:
            read = pairing.attack.threat.reads
            leaks += _attack(pairing, scene, (seen.only(read), before.only(read)), truth)
        leaks += pairing.skipped()
    return leaks


def _attack(
    pairing: Pairing, scene: Scene, read: tuple[Transcript, Untrained], truth: Truth
) -> list[Leak]:
    """What one attack finds.

    Args:
        read: what it reads of the transcript, and the same before training.
    """
    seen, before = read
    knowledge = knowledge_for(pairing, scene)
    attack, spec = pairing.attack, spec_of(pairing.attack)
    rng = np.random.default_rng(scene.seeds.attack)
    told_rows = None if knowledge.labelled is None else knowledge.labelled.rows
    start = time.perf_counter()
    try:
        guesses = asked(attack, seen, knowledge, rng, _labels(truth))
        chosen = [g for g in guesses if g.goal in pairing.goals]
        scored = [
            (guess, score(guess, truth, told_rows)) for guess in chosen if guess.measure in ALONE
        ]
        for alike in _grouped(chosen):
            together = BY_MEASURE.get(
                alike[0].measure, TOGETHER.get(alike[0].goal, score_over_training)
            )
            scored += [(alike[0], f) for f in together(alike, seen, truth)]
        if before.seen.messages and Goal.LABEL in {guess.goal for guess in chosen}:
            scored = with_floors(scored, attack, before, knowledge, scene.seeds.attack, truth)
        seconds = time.perf_counter() - start
        leaks = [
            Leak(
                attack=spec,
                status="ok",
                goal=guess.goal,
                attribute=guess.attribute,
                channel=guess.channel,
                told=_told(knowledge.labelled, guess.attribute),
                bound=guess.bound,
                seconds=seconds / len(scored),
                **{"view": guess.view} | fields,
            )
            for guess, fields in scored
        ]
    except MissingExtra:
        raise
    except Silent as error:
        return failed(pairing, "skipped", str(error))
    except Diverged as error:
        return failed(pairing, "diverged", str(error))
    except (Exception, SystemExit) as error:  # a library under an attack may call exit()
        return failed(pairing, "out-of-memory" if out_of_memory(error) else "failed", told(error))
    nothing = "the transcript holds nothing to guess this from"
    silent = pairing.goals - {leak.goal for leak in leaks}
    leaks += [
        Leak(attack=spec, status="skipped", reason=nothing, goal=goal) for goal in sorted(silent)
    ]
    return leaks


Scored = list[tuple[Guess, dict[str, Any]]]


def with_floors(
    scored: Scored,
    attack: Attack,
    before: Untrained,
    knowledge: Knowledge,
    seed: int,
    truth: Truth,
) -> Scored:
    """The scored guesses about labels, those from activations with what the attack finds before training.

    Args:
        before: activations of the same texts under the untrained model.
        seed: of what the attack draws: the same folds once more.
    """

    def found(_: np.random.Generator) -> dict[tuple[object, ...], Any]:
        rng = np.random.default_rng(seed)
        guesses = asked(attack, before.seen, knowledge, rng, _labels(truth))
        return {
            (alike[0].channel, alike[0].measure, fields["view"]): fields["success"]
            for alike in _grouped([guess for guess in guesses if guess.goal == Goal.LABEL])
            for fields in score_over_training(alike, before.seen, truth, curve=False)
        }

    told = [spec_of(attack)]
    if knowledge.mechanism is not None:
        told.append(spec_of(knowledge.mechanism))
    key = digest([before.name, seed, [each.model_dump(mode="json") for each in told]])
    try:
        floors = FLOORS.setdefault(type(attack), Memory(kept=64)).recall(key, found)
    except Exception:  # it works, but not without what else is sent
        return scored
    return [
        (guess, fields | {"floor": floors.get((guess.channel, guess.measure, fields.get("view")))})
        if guess.goal == Goal.LABEL
        else (guess, fields)
        for guess, fields in scored
    ]


def _labels(truth: Truth) -> Ints:
    """[N] of all examples of `train`."""
    train = truth.splits.get("train")
    return np.zeros(0, np.int64) if train is None else train.labels


def asked(
    attack: Attack,
    seen: Transcript,
    knowledge: Knowledge,
    rng: np.random.Generator,
    labels: Ints,
) -> list[Guess]:
    """What an attack guesses, asked once per fold where it is told the labels of the others.

    Args:
        labels: [N] of all examples of `train`.
    """
    if not attack.folds:
        return isolated(functools.partial(attack.guess, seen, knowledge, rng))
    fold = rng.permutation(len(labels)) % attack.folds
    parts: dict[tuple[object, ...], list[Guess]] = {}
    for i in range(attack.folds):
        told = replace(knowledge, labels=np.where(fold == i, -1, labels))
        for guess in isolated(functools.partial(attack.guess, seen, told, rng)):
            where = (guess.channel, guess.measure, guess.moment, guess.round)
            parts.setdefault((*where, guess.part, guess.recipient), []).append(guess)
    return [
        replace(
            guesses[0],
            rows=np.concatenate([guess.rows for guess in guesses]),
            values=np.concatenate([guess.values for guess in guesses]),
        )
        for guesses in parts.values()
    ]


def _grouped(guesses: Sequence[Guess]) -> list[list[Guess]]:
    """Guesses that are scored together: of one channel and one measure."""
    found: dict[tuple[object, ...], list[Guess]] = {}
    for guess in guesses:
        if guess.measure not in ALONE:
            found.setdefault((guess.goal, guess.channel, guess.measure), []).append(guess)
    return list(found.values())


def _told(labelled: Labelled | None, attribute: str | None) -> list[int]:
    """How many examples of each value of an attribute the attacker was told."""
    if labelled is None or attribute not in labelled.attributes:
        return []
    values = labelled.attributes[attribute]
    counts: list[int] = np.bincount(
        values[values >= 0], minlength=labelled.values[attribute]
    ).tolist()
    return counts
