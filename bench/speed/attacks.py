"""Attacks, against the training of the cell that they attack."""

from __future__ import annotations

import os
import time
from functools import cache
from pathlib import Path

import numpy as np
import torch

from leakboard.attacks.canary_exposure import CanaryExposure
from leakboard.attacks.eia_optimise import Optimise
from leakboard.bench.backbones import LanguageModel, Tokens, load_backbone
from leakboard.bench.contracts import (
    Channel,
    Cost,
    Goal,
    Ints,
    Message,
    Plant,
    TrainSettings,
    Transcript,
)
from leakboard.bench.exchange import vector_of
from leakboard.bench.methods import Knowledge, registry
from leakboard.bench.running import PlannedCell, context_of, make_plan, run_cell
from leakboard.bench.scoring import Truth, score_canaries
from leakboard.bench.speed.figures import Figure
from leakboard.bench.suites import Suite, load_suite
from leakboard.bench.tasks import load_task, plant_task
from leakboard.defenses.sap import SAP

ETA = 75.0


def attacks() -> list[Figure]:
    """Share of all attacks and scoring in the time of a cell of the smoke suite."""
    cost = smoke_cell()
    share = cost.attack_seconds / cost.total_seconds
    told = "attacks: share of attacks and scoring in a cell of smoke, sap at η = 75"
    return [Figure(told, share, 0.10, 0.15)]


def inversion(cut: int = 2, texts: int = 64, compared: int = 8) -> list[Figure]:
    """Inversion by optimisation behind two blocks, against the training of a cell of the smoke suite.

    Then its search among candidates against that among all words: the words found in both.
    """
    data = os.environ.get("LEAKBOARD_DATA")
    name = "sst2" if data else "reviews"
    told = load_task(name, Path(data) if data else None).splits["dev"].texts[:texts]
    base = load_backbone("minilm")
    rng = np.random.default_rng(0)

    def found(attack: Optimise, tokens: Tokens, eta: float | None) -> tuple[Ints, float]:
        vectors = SAP(eta=eta).simulate(base, tokens, cut, rng)
        assert vectors is not None
        sent = (np.arange(len(tokens)), vectors.values.numpy(), vectors.lengths.numpy())
        message = Message(Channel.REPRESENTATIONS, "dev", 0, "customer", "vendor", 0, *sent)
        start = time.perf_counter()
        (guess,) = attack.guess(
            Transcript((message,)), Knowledge(2, "cpu", cut, base), np.random.default_rng(0)
        )
        return guess.values[:, 0], time.perf_counter() - start

    tokens = base.encode(told, None, 64)
    cell = smoke_cell().train_seconds
    figures = []
    few = tokens.take(torch.from_numpy(rng.permutation(len(tokens))[:compared]))
    for eta in (None, 50.0):
        words, seconds = found(Optimise(), tokens, eta)
        real = ~tokens.special.numpy()
        right = (words == tokens.ids.values.numpy())[real].mean()
        about = (
            f"inversion: {len(told)} sentences of {name} behind block {cut}, η = {eta or 'none'}"
        )
        figures.append(Figure(f"{about}: tokens found", right, more=True))
        figures.append(Figure("  in trainings of a cell of smoke", seconds / cell))
        both = []
        for candidates in (Optimise().candidates, len(base.embeddings)):
            rng = np.random.default_rng(1)
            both.append(found(Optimise(candidates=candidates), few, eta))
        (narrow, quick), (wide, slow) = both
        same = (narrow == wide)[~few.special.numpy()].mean()
        figures += [
            Figure("  found as among all words", same, 0.98, 0.95, more=True),
            Figure("  time among all words over this", slow / quick, 3, 1.5, more=True),
        ]
    return figures


def exposure(canaries: int = 10) -> list[Figure]:
    """Ten canaries' exact exposure against that of one, of all 10^6 secrets of their sentence, in CPU time.

    They stand in one sentence, whose secrets are ranked once; each sentence more takes as long again.
    """
    base, task = load_backbone("dialogue-gpt"), load_task("dialogues").limited(100, 0)
    form, attack = "My order number is {digits}", CanaryExposure(releases="last")

    def network() -> LanguageModel:
        return LanguageModel(base, TrainSettings())

    vector = vector_of(network()).numpy()[None]
    message = Message(
        *(Channel.MODEL, "train", 0, "customer", "public", 0, np.zeros(1, np.int64)), vector
    )
    seen = Transcript((message,))
    knowledge = Knowledge(0, "cpu", base=base, network=network, canaries=(form,))

    def seconds(each: int) -> float:
        plant = Plant(canaries=(form,), copies=(1,), each=each, unseen=0)
        truth = Truth({}, {}, {}, plant_task(task, plant, 0))
        start = time.process_time()
        guesses = attack.guess(seen, knowledge, np.random.default_rng(0))
        score_canaries([guess for guess in guesses if guess.measure == "exposure"], seen, truth)
        return time.process_time() - start

    seconds(1)  # what the public model makes of the sentence is known from here on
    one, many = seconds(1), seconds(canaries)
    return [
        Figure(f"exposure: of {canaries} canaries in a sentence over one", many / one, 1.5, 3.0)
    ]


@cache
def smoke_cell() -> Cost:
    """What a cell of the smoke suite takes, SAP at η = 75, after another, so that all is imported."""
    plan = make_plan(load_suite("smoke"))
    for planned in [p for p in plan.cells if p.defense.params.get("eta") == ETA][::-1]:
        cost = run_cell(context_of(plan, planned)).cost
    assert cost is not None
    return cost


def label_attacks(examples: int = 600, few: int = 40) -> list[Figure]:
    """Shares of recomputation and of the label attacks in an undefended cell of as many epochs as `matrix`.

    Args:
        few: examples of the cell before it, after which nothing is left to be imported: a run of many
            cells does so once.
    """
    for limit in (few, examples):
        planned, cost = _attacked_for_labels(limit)
    assert cost.recompute_seconds is not None
    told = f"label attacks: share of recomputation, {examples:,} examples of {planned.cell.task}"
    rest = cost.attack_seconds - cost.recompute_seconds
    return [
        Figure(told, cost.recompute_seconds / cost.total_seconds, 0.25, 0.30),
        Figure("  share of all label attacks besides", rest / cost.total_seconds, 0.05, 0.10),
    ]


def _attacked_for_labels(limit: int) -> tuple[PlannedCell, Cost]:
    data = os.environ.get("LEAKBOARD_DATA")
    suite = Suite(
        name="label-attacks",
        task="sst2" if data else "reviews",
        model="minilm",
        limit=limit,
        train=(TrainSettings(epochs=3),),
        defenses=(registry.defense("none")(),),
        attacks=tuple(
            attack()
            for attack in registry.attacks().values()
            if Goal.LABEL in attack.threat.goals and not attack.costly
        ),
    )
    plan = make_plan(suite, Path(data) if data else None)
    # Beside it stands the untuned model, which is a row of every suite.
    planned = next(p for p in plan.cells if p.cell.defense.name == "none")
    cost = run_cell(context_of(plan, planned)).cost
    assert cost is not None
    return planned, cost
