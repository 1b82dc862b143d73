"""Runs attacks on a transcript. They receive it and their knowledge; the truth stays in this module."""

from __future__ import annotations

import functools
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.random import Generator

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
    Status,
    Transcript,
    digest,
    grouped,
)
from leakboard.bench.exchange import Diverged
from leakboard.bench.methods import Attack, Knowledge, Labelled, Silent, spec_of
from leakboard.bench.running.cell_context import CellContext
from leakboard.bench.running.grants import knowledge_for
from leakboard.bench.running.isolation import (
    checked_guesses,
    error_line,
    guess_in_process,
    is_external,
    is_out_of_memory,
    run_isolated,
)
from leakboard.bench.running.pairing import Pairing
from leakboard.bench.scoring import (
    Truth,
    score,
    score_canaries,
    score_continuations,
    score_members,
    score_over_training,
    score_presence,
)

SCORERS_BY_GOAL = {
    Goal.MEMORISATION: score_canaries,
    Goal.MEMBERSHIP: score_members,
    Goal.REIDENTIFICATION: score_presence,
}
"""Scorers of guesses that are not classes; all other guesses are scored over training."""
SCORERS_BY_MEASURE = {"continuation": score_continuations}
"""Scorers of single measures; they take precedence."""


_FLOORS: WeakKeyDictionary[type[Attack], Memory] = WeakKeyDictionary()
"""Floors of each attack by what they depend on, since cells of one seed attack the same batches."""
SCORED_SINGLY = ("accuracy", "bag")
"""Measures of guesses that are scored one at a time."""


TRUNCATED = (
    "the transcript exceeds the recording budget by {:.0f} MB; "
    "lower record.examples or raise record.megabytes in the suite"
)


@dataclass(frozen=True)
class UntrainedTranscript:
    """The transcript that the untrained model would have produced from the same texts at the same moments.

    Attributes:
        name: hash of the model, the labels of `train` and the transcript.
    """

    seen: Transcript
    name: str

    @classmethod
    def of(cls, seen: Transcript, labels: Ints, model: str) -> UntrainedTranscript:
        before, content = before_training(seen), hashlib.sha256(model.encode() + labels.tobytes())
        for m in before.messages:
            where = (m.channel, m.round, m.part, m.recipient, m.step, m.moment, m.values.shape)
            content.update(repr(where).encode() + m.rows.tobytes() + m.values.tobytes())
        return cls(before, content.hexdigest())

    def only(self, channels: frozenset[Channel]) -> UntrainedTranscript:
        return replace(self, seen=self.seen.only(channels))


def attack_all(
    context: CellContext,
    seen: Transcript,
    claim: Claim | None = None,
    guessed: list[Guess] | None = None,
) -> list[Leak]:
    """Runs every paired attack on a transcript and scores its guesses.

    Args:
        claim: the formal guarantee of the defense, if it has one.
        guessed: list to which all guesses are added.
    """
    inputs, pairings = context.inputs, context.planned.pairings
    answers = inputs.prompts.answers if inputs.prompts else None
    tokens, recorded = {**inputs.tokens, **context.answered}, dict(inputs.recorded)
    recorded |= dict.fromkeys(context.answered, recorded[context.cell.evaluate])
    truth = Truth(
        *(tokens, inputs.task.splits, recorded, inputs.planted, claim, answers),
        prompted=inputs.task.objective == "language modelling",
    )
    before = UntrainedTranscript.of(seen, _labels(truth), context.cell.model_hash)
    leaks: list[Leak] = []
    for pairing in context.progress("attacking", pairings, len(pairings)):
        reads = pairing.attack.threat.reads or set(Channel)
        if reads & seen.dropped.keys():
            leaks += pairing.failed_leaks("skipped", TRUNCATED.format(seen.dropped_bytes / 1e6))
        elif pairing.goals:
            read = pairing.attack.threat.reads
            leaks += _attack(pairing, context, (seen.only(read), before.only(read)), truth, guessed)
        leaks += pairing.skipped_leaks()
    return leaks


def _attack(
    pairing: Pairing,
    context: CellContext,
    read: tuple[Transcript, UntrainedTranscript],
    truth: Truth,
    guessed: list[Guess] | None,
) -> list[Leak]:
    """Leaks of one attack, for each goal that it can pursue.

    Args:
        read: the channels of the transcript that it reads, and the same before training.
        guessed: list to which its guesses are added.
    """
    seen, before = read
    knowledge = knowledge_for(pairing, context)
    if knowledge.texts is not None:
        truth = replace(truth, texts={name: own.tokens for name, own in knowledge.texts.items()})
    attack, spec = pairing.attack, spec_of(pairing.attack)
    rng = np.random.default_rng(context.seeds.attack)
    labelled_rows = None if knowledge.labelled is None else knowledge.labelled.rows
    start = time.perf_counter()
    try:
        guesses = attack_guesses(attack, seen, knowledge, rng, _labels(truth), context.isolated)
        if guessed is not None:
            guessed += guesses
        chosen = [g for g in guesses if g.goal in pairing.goals]
        scored = [
            (guess, score(guess, truth, labelled_rows))
            for guess in chosen
            if guess.measure in SCORED_SINGLY
        ]
        for group in _scoring_groups(chosen):
            by_goal = SCORERS_BY_GOAL.get(group[0].goal, score_over_training)
            scorer = SCORERS_BY_MEASURE.get(group[0].measure, by_goal)
            scored += [(group[0], fields) for fields in scorer(group, seen, truth)]
        if before.seen.messages and Goal.LABEL in {guess.goal for guess in chosen}:
            scored = add_floors(scored, context, attack, before, knowledge, truth)
        seconds = time.perf_counter() - start
        leaks = [
            Leak(
                attack=spec,
                status="ok",
                goal=guess.goal,
                attribute=guess.attribute,
                channel=guess.channel,
                told=_labelled_counts(knowledge.labelled, guess.attribute),
                bound=guess.bound,
                seconds=seconds / len(scored),
                **{"view": guess.view} | fields,
            )
            for guess, fields in scored
        ]
    except MissingExtra:
        raise
    except Silent as error:
        return pairing.failed_leaks("skipped", str(error))
    except Diverged as error:
        return pairing.failed_leaks("diverged", str(error))
    except (Exception, SystemExit) as error:  # a library under an attack may call exit()
        status: Status = "out-of-memory" if is_out_of_memory(error) else "failed"
        return pairing.failed_leaks(status, error_line(error))
    reason = "the transcript contains nothing from which to guess this"
    silent = pairing.goals - {leak.goal for leak in leaks}
    leaks += [
        Leak(attack=spec, status="skipped", reason=reason, goal=goal) for goal in sorted(silent)
    ]
    return leaks


Scored = list[tuple[Guess, dict[str, Any]]]


def add_floors(
    scored: Scored,
    context: CellContext,
    attack: Attack,
    before: UntrainedTranscript,
    knowledge: Knowledge,
    truth: Truth,
) -> Scored:
    """Adds to scored guesses about labels the success of the same attack before training.

    Args:
        before: activations of the same texts under the untrained model.
    """
    seed = context.seeds.attack  # so that it draws the same folds

    def compute_floors(_: Generator) -> dict[tuple[object, ...], Any]:
        rng = np.random.default_rng(seed)
        guesses = attack_guesses(
            attack, before.seen, knowledge, rng, _labels(truth), context.isolated
        )
        return {
            (group[0].channel, group[0].measure, fields["view"]): fields["success"]
            for group in _scoring_groups([guess for guess in guesses if guess.goal == Goal.LABEL])
            for fields in score_over_training(group, before.seen, truth, curve=False)
        }

    specs = [spec_of(attack)]
    if knowledge.mechanism is not None:
        specs.append(spec_of(knowledge.mechanism))
    key = digest([before.name, seed, [each.model_dump(mode="json") for each in specs]])
    try:
        floors = _FLOORS.setdefault(type(attack), Memory(capacity=64)).recall(key, compute_floors)
    except Exception:  # the attack works, but only with the other channels
        return scored
    return [
        (guess, fields | {"floor": floors.get((guess.channel, guess.measure, fields.get("view")))})
        if guess.goal == Goal.LABEL
        else (guess, fields)
        for guess, fields in scored
    ]


def _labels(truth: Truth) -> Ints:
    """[N] labels of all examples of `train`."""
    train = truth.splits.get("train")
    return np.zeros(0, np.int64) if train is None else train.labels


def attack_guesses(
    attack: Attack,
    seen: Transcript,
    knowledge: Knowledge,
    rng: Generator,
    labels: Ints,
    isolated: bool = False,
) -> list[Guess]:
    """The guesses of an attack; one that knows labels is run once per fold, with those of the other folds.

    Args:
        labels: [N] labels of all examples of `train`.
        isolated: an attack from outside runs in a process of its own.
    """

    def guess(granted: Knowledge) -> list[Guess]:
        if isolated and is_external(attack):
            return guess_in_process(attack, seen, granted, rng)
        return run_isolated(functools.partial(checked_guesses, attack, seen, granted, rng))

    if not attack.folds:
        return guess(knowledge)
    fold = rng.permutation(len(labels)) % attack.folds
    granted = (
        replace(knowledge, labels=np.where(fold == i, -1, labels)) for i in range(attack.folds)
    )
    parts = grouped(
        (part for each in granted for part in guess(each)),
        lambda one: (one.channel, one.measure, one.moment, one.round, one.part, one.recipient),
    )
    return [
        replace(
            guesses[0],
            rows=np.concatenate([guess.rows for guess in guesses]),
            values=np.concatenate([guess.values for guess in guesses]),
        )
        for guesses in parts.values()
    ]


def _scoring_groups(guesses: Sequence[Guess]) -> list[list[Guess]]:
    """Guesses that are scored together: those of one goal, channel and measure."""
    together = (guess for guess in guesses if guess.measure not in SCORED_SINGLY)
    return [*grouped(together, lambda one: (one.goal, one.channel, one.measure)).values()]


def _labelled_counts(labelled: Labelled | None, attribute: str | None) -> list[int]:
    """Number of labelled examples that the attacker was given, per value of an attribute."""
    if labelled is None or attribute not in labelled.attributes:
        return []
    values = labelled.attributes[attribute]
    counts: list[int] = np.bincount(
        values[values >= 0], minlength=labelled.values[attribute]
    ).tolist()
    return counts
