"""Attacks let loose on a transcript. They see it and their knowledge; the truth stays here."""

from __future__ import annotations

import functools
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import torch

from bench.backbones import Backbone
from bench.errors import LeakboardError, MissingExtra
from bench.inputs import Inputs
from bench.inverting import received
from bench.plan import Pairing, Planned, spec_of
from bench.record import Leak, Status
from bench.scoring import BadGuess, Truth, score
from bench.seeds import Seeds
from bench.types import Auxiliary, Knowledge, Knows, Progress, Query, Transcript

T = TypeVar("T")


def attack_all(
    planned: Planned,
    transcript: Transcript,
    inputs: Inputs,
    backbone: Backbone,
    pairings: Sequence[Pairing],
    seeds: Seeds,
    progress: Progress,
) -> list[Leak]:
    """Lets every paired attack loose on a transcript and scores what it guesses."""
    truth = Truth(inputs.tokens, inputs.task.splits, inputs.recorded)
    leaks: list[Leak] = []
    for pairing in progress("attacking", pairings, len(pairings)):
        if pairing.goals:
            knowledge = knowledge_for(pairing, planned, inputs, backbone)
            leaks += _attack(pairing, transcript, knowledge, truth, seeds, planned)
        leaks += pairing.skipped()
    return leaks


def knowledge_for(
    pairing: Pairing, planned: Planned, inputs: Inputs, backbone: Backbone
) -> Knowledge:
    """What the attack's threat model grants it, and nothing else."""
    knows = pairing.attack.needs
    auxiliary = None
    if Knows.AUXILIARY_TEXT in knows:
        public = inputs.task.splits["auxiliary"]
        auxiliary = Auxiliary(inputs.tokens["auxiliary"], public.labels, public.attributes)
    return Knowledge(
        classes=len(inputs.task.labels),
        device=backbone.device,
        cut=planned.cell.cut,
        base=backbone if Knows.BASE_WEIGHTS in knows else None,
        mechanism=planned.defense if Knows.MECHANISM in knows else None,
        auxiliary=auxiliary,
        query=oracle(planned, backbone) if Knows.QUERIES in knows else None,
        vocabulary=len(backbone.embeddings),
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
    start = time.perf_counter()
    try:
        guesses = isolated(functools.partial(attack.guess, transcript, knowledge, rng))
        chosen = [g for g in guesses if g.goal in pairing.goals]
        scored = [(guess, score(guess, truth)) for guess in chosen]
        seconds = time.perf_counter() - start
        leaks = [
            Leak(
                attack=spec,
                status="ok",
                goal=guess.goal,
                view=guess.view,
                attribute=guess.attribute,
                channel=guess.channel,
                certificate=planned.defense.undefended
                and fields["success"].low > fields["success"].chance
                and fields["success"].value >= attack.certified_at,
                seconds=seconds / len(scored),
                **fields,
            )
            for guess, fields in scored
        ]
    except MissingExtra:
        raise
    except (Exception, SystemExit) as error:  # a library under an attack may call exit()
        return failed(pairing, "out-of-memory" if out_of_memory(error) else "failed", told(error))
    nothing = "the transcript holds nothing to guess this from"
    silent = pairing.goals - {leak.goal for leak in leaks}
    leaks += [
        Leak(attack=spec, status="skipped", reason=nothing, goal=goal) for goal in sorted(silent)
    ]
    return leaks


def failed(pairing: Pairing, status: Status, reason: str) -> list[Leak]:
    """The leaks of an attack that found nothing because something broke."""
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
