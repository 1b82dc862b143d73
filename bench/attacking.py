"""Attacks let loose on a transcript. They see it and their knowledge; the truth stays here."""

from __future__ import annotations

import functools
import threading
import time
import traceback
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import torch

from bench.adapter_gradients import with_adapter_gradients
from bench.backbones import Backbone
from bench.errors import LeakboardError, MissingExtra
from bench.inputs import Inputs
from bench.inverting import received
from bench.language import LanguageModel
from bench.memory import score_canaries, score_members
from bench.plan import Pairing, Planned, spec_of
from bench.record import Estimate, Leak, Status
from bench.released import Trainee
from bench.scoring import BadGuess, Truth, score, score_over_training
from bench.seeds import Seeds
from bench.session import Network
from bench.tasks.catalogue import OWN
from bench.training import Diverged
from bench.types import (
    Attack,
    Channel,
    Goal,
    Guess,
    Ints,
    Knowledge,
    Knows,
    Labelled,
    Progress,
    Query,
    Transcript,
)

T = TypeVar("T")
TOGETHER = {Goal.MEMORISATION: score_canaries, Goal.MEMBERSHIP: score_members}
"""How guesses are scored that are no class, beside those about labels."""
TRUNCATED = (
    "the transcript exceeds the recording budget by {:.0f} MB; "
    "lower record.examples or raise record.megabytes in the suite"
)
LABELLED = 0.1
"""Share of the recorded training examples that is granted where an attack names none."""


def attack_all(
    planned: Planned,
    transcript: Transcript,
    inputs: Inputs,
    backbone: Backbone,
    pairings: Sequence[Pairing],
    seeds: Seeds,
    progress: Progress,
    delta: float = 0.0,
) -> list[Leak]:
    """Lets every paired attack loose on a transcript and scores what it guesses.

    Args:
        delta: δ of the defense's claim; 0 where it makes none.
    """
    truth = Truth(inputs.tokens, inputs.task.splits, inputs.recorded, inputs.planted, delta)
    leaks: list[Leak] = []
    for pairing in progress("attacking", pairings, len(pairings)):
        reads = pairing.attack.threat.reads or set(Channel)
        if reads & transcript.dropped.keys():
            leaks += failed(pairing, "skipped", TRUNCATED.format(transcript.dropped_bytes / 1e6))
        elif pairing.goals:
            knowledge = knowledge_for(pairing, planned, inputs, backbone)
            seen = transcript.only(pairing.attack.threat.reads)
            leaks += _attack(pairing, seen, knowledge, truth, seeds, planned)
        leaks += pairing.skipped()
    return leaks


def worked_out(
    planned: Planned,
    transcript: Transcript,
    backbone: Backbone,
    classes: int,
    pairings: Sequence[Pairing],
) -> Transcript:
    """The transcript with what the vendor works out from its calls, where an attack reads that."""
    if not any(Channel.ADAPTER_GRADIENTS in pairing.attack.threat.reads for pairing in pairings):
        return transcript
    network = vendors_network(planned, backbone, classes)
    assert isinstance(network, Network)
    return with_adapter_gradients(transcript, network)


def vendors_network(planned: Planned, backbone: Backbone, classes: int) -> Trainee:
    """The model that serves the calls of an API or is released; what it has to train means nothing.

    Without classes it is a language model.
    """
    if not classes:
        return LanguageModel(backbone, planned.cell.train)
    return Network(backbone, 0, classes, planned.cell.train, slice(None))


def knowledge_for(
    pairing: Pairing,
    planned: Planned,
    inputs: Inputs,
    backbone: Backbone,
    knows: frozenset[Knows] | None = None,
) -> Knowledge:
    """What the attack's threat model grants it, and nothing else; or `knows`, where it is given."""
    knows = pairing.attack.needs if knows is None else knows
    public = inputs.public.get(getattr(pairing.attack, "auxiliary", OWN))
    classes = len(inputs.task.labels)
    return Knowledge(
        classes=classes,
        device=backbone.device,
        cut=planned.cell.cut,
        base=backbone if Knows.BASE_WEIGHTS in knows else None,
        network=functools.partial(vendors_network, planned, backbone, classes)
        if Knows.BASE_WEIGHTS in knows
        else None,
        mechanism=planned.defense if Knows.MECHANISM in knows else None,
        auxiliary=public if Knows.AUXILIARY_TEXT in knows else None,
        labelled=granted(pairing, planned, inputs) if Knows.LABELLED_SHARE in knows else None,
        query=oracle(planned, backbone) if Knows.QUERIES in knows else None,
        vocabulary=len(backbone.embeddings),
        canaries=planned.cell.plant.canaries if planned.cell.plant else (),
        candidates=inputs.candidates,
        shadows=planned.shadows.get(pairing.attack) if Knows.SHADOWS in knows else None,
    )


def granted(pairing: Pairing, planned: Planned, inputs: Inputs) -> Labelled:
    """The attributes of a share of the recorded training examples.

    The rows depend on the seed and the share alone, and those of a smaller share are among those
    of a larger one. Classes are not balanced: one that is rare may be missing.
    """
    recorded = inputs.recorded["train"]
    share = getattr(pairing.attack, "labelled", LABELLED)
    # A stream of its own, so that what an attack draws does not depend on what it is granted.
    rng = np.random.default_rng([Seeds.of(planned.cell.seed).attack, zlib.crc32(b"labelled")])
    order = rng.permutation(recorded)
    size = max(1, round(share * len(recorded)))
    rows, rest = np.sort(order[:size]), order[size:]
    attributes = {
        name: values
        for name, values in inputs.task.splits["train"].attributes.items()
        if (values[rest] >= 0).any()
    }
    return Labelled(
        rows,
        {name: values[rows] for name, values in attributes.items()},
        {name: len(inputs.task.attributes[name]) for name in attributes},
    )


def oracle(planned: Planned, backbone: Backbone) -> Query:
    """The customer's side before it trains: public tokens in, what the vendor would receive out."""
    defense, cut = planned.defense, planned.cell.cut
    return lambda tokens, rng: received(defense, backbone, tokens, cut, rng)


def _attack(
    pairing: Pairing,
    transcript: Transcript,
    knowledge: Knowledge,
    truth: Truth,
    seeds: Seeds,
    planned: Planned,
) -> list[Leak]:
    attack, spec = pairing.attack, spec_of(pairing.attack)
    rng = np.random.default_rng(seeds.attack)
    told_rows = None if knowledge.labelled is None else knowledge.labelled.rows
    start = time.perf_counter()
    try:
        train = truth.splits.get("train")
        labels = np.zeros(0, np.int64) if train is None else train.labels
        guesses = asked(attack, transcript, knowledge, rng, labels)
        chosen = [g for g in guesses if g.goal in pairing.goals]
        scored = [
            (guess, score(guess, truth, told_rows))
            for guess in chosen
            if guess.measure == "accuracy"
        ]
        for alike in _grouped(chosen):
            together = TOGETHER.get(alike[0].goal, score_over_training)
            scored += [(alike[0], f) for f in together(alike, transcript, truth)]
        seconds = time.perf_counter() - start
        leaks = [
            Leak(
                attack=spec,
                status="ok",
                goal=guess.goal,
                attribute=guess.attribute,
                channel=guess.channel,
                certificate=planned.defense.undefended and _works(attack, guess, fields["success"]),
                told=_told(knowledge.labelled, guess.attribute),
                seconds=seconds / len(scored),
                **{"view": guess.view} | fields,
            )
            for guess, fields in scored
        ]
    except MissingExtra:
        raise
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


def _works(attack: Attack, guess: Guess, success: Estimate) -> bool:
    """Whether what an attack found without a defense is evidence that it works."""
    # The rank of one secret among 10^6 has no interval, but says enough: one that was never seen
    # reaches b bits with probability 2^-b.
    clear = success.low > success.chance or guess.measure == "exposure"
    return clear and success.value >= attack.certified_at


def _grouped(guesses: Sequence[Guess]) -> list[list[Guess]]:
    """Guesses that are scored together: of one channel and one measure."""
    found: dict[tuple[object, ...], list[Guess]] = {}
    for guess in guesses:
        if guess.measure != "accuracy":
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


def failed(pairing: Pairing, status: Status, reason: str) -> list[Leak]:
    """The leaks of an attack that could find nothing, one per goal."""
    spec = spec_of(pairing.attack)
    return [
        Leak(attack=spec, status=status, reason=reason, goal=goal) for goal in sorted(pairing.goals)
    ]


def out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, on the device or in this process."""
    # On the CPU, torch raises a RuntimeError with no type of its own.
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
    )


def isolated(call: Callable[[], T]) -> T:
    """Runs an attack on a stack of its own, so that no frame above it holds the truth."""
    result: list[T] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            result.append(call())
        except BaseException as error:  # handed to the caller, whatever it is
            failure.append(error)

    thread = threading.Thread(target=work, name="attack", daemon=True)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return result[0]


def told(error: BaseException) -> str:
    """One line about an error: what and where."""
    if isinstance(error, LeakboardError | BadGuess):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"
