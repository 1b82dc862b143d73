"""Attacks, as shares of the cells in which they run, and against simpler searches."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarking import Figure
from processor_threads import threads

from leakboard.attacks.canary_exposure import CanaryExposure
from leakboard.attacks.eia_optimise import Optimise
from leakboard.bench.backbones import load_backbone
from leakboard.bench.backbones.language import LanguageModel
from leakboard.bench.backbones.ragged import Tokens
from leakboard.bench.contracts import Channel, Cost, Goal, Message, Plant, TrainSettings, Transcript
from leakboard.bench.contracts.arrays import Ints
from leakboard.bench.exchange import vector_of
from leakboard.bench.methods import Knowledge, registry
from leakboard.bench.running import make_plan, run_cell
from leakboard.bench.running.cell_context import context_of
from leakboard.bench.scoring import Truth, score_canaries
from leakboard.bench.suites import Suite, load_suite
from leakboard.bench.tasks import load_task, plant_task
from leakboard.defenses.sap import SAP

ETA = 75.0
EXAMPLES, FEW = 600, 40
CUT, SENTENCES, COMPARED = 2, 64, 8
CANARIES = 10


@pytest.mark.long
def test_attacks_in_a_cell_of_smoke(comparison):
    """Share of all attacks and of scoring in the time of a cell, SAP at η = 75."""
    plan = make_plan(load_suite("smoke"))
    planned = next(cell for cell in plan.cells if cell.defense.params.get("eta") == ETA)
    run_cell(context_of(plan, planned))  # everything is imported from here on
    record = comparison.measure(lambda: run_cell(context_of(plan, planned)), rounds=1)
    share = record.cost.attack_seconds / record.cost.total_seconds
    name = "attacks: share of attacks and scoring in a cell of smoke, sap at η = 75"
    comparison.report(Figure(name, share, 0.10, 0.15))


def label_cell(limit: int, task: str, data: Path | None) -> Cost:
    """Cost of an undefended cell with as many epochs as `matrix`, under all label attacks."""
    attacks = [
        attack()
        for attack in registry.attacks().values()
        if Goal.LABEL in attack.threat.goals and not attack.costly
    ]
    suite = Suite(
        name="label-attacks",
        task=task,
        model="minilm",
        limit=limit,
        train=(TrainSettings(epochs=3),),
        defenses=(registry.defense("none")(),),
        attacks=tuple(attacks),
    )
    plan = make_plan(suite, data)
    planned = next(p for p in plan.cells if p.cell.defense.name == "none")
    return run_cell(context_of(plan, planned)).cost


@pytest.mark.long
def test_label_attacks(comparison, task, data):
    """Shares of recomputation and of the label attacks in a cell.

    A cell of few examples runs first, after which everything is imported.
    """
    label_cell(FEW, task.name, data)
    cost = comparison.measure(lambda: label_cell(EXAMPLES, task.name, data), rounds=1)
    rest = cost.attack_seconds - cost.recompute_seconds
    name = f"label attacks: share of recomputation, {EXAMPLES:,} examples of {task.name}"
    comparison.report(
        Figure(name, cost.recompute_seconds / cost.total_seconds, 0.25, 0.30),
        Figure("  share of all label attacks besides", rest / cost.total_seconds, 0.05, 0.10),
    )


# Against noise the search among all words alone takes more than a minute.
@pytest.mark.parametrize("eta", [None, pytest.param(50.0, marks=pytest.mark.long)])
def test_inversion(comparison, task, minilm, eta):
    """Inversion by optimisation behind two blocks; against noise, also its search against that among all words.

    Both searches recover the same tokens for the most part. Their times are CPU times of one thread. Without noise
    there is next to nothing to search: both take the time of the discriminant, which says nothing of either.
    """
    tokens = minilm.encode(task.splits["dev"].texts[:SENTENCES], None, 64)
    rng = np.random.default_rng(0)
    few = tokens.take(torch.from_numpy(rng.permutation(len(tokens))[:COMPARED]))

    def guess(tokens: Tokens, vectors, **settings: int) -> Ints:
        sent = (np.arange(len(tokens)), vectors.values.numpy(), vectors.lengths.numpy())
        message = Message(Channel.REPRESENTATIONS, "dev", 0, "customer", "vendor", 0, *sent)
        knowledge = Knowledge(2, "cpu", CUT, minilm)
        rng = np.random.default_rng(0)
        (words,) = Optimise(**settings).guess(Transcript((message,)), knowledge, rng)
        return words.values[:, 0]

    sent = SAP(eta=eta).simulate(minilm, tokens, CUT, rng)
    found = comparison.measure(lambda: guess(tokens, sent), rounds=1)
    right = (found == tokens.ids.values.numpy())[~tokens.special.numpy()].mean()
    about = (
        f"inversion: {len(tokens)} sentences of {task.name} behind block {CUT}, η = {eta or 'none'}"
    )
    comparison.report(Figure(f"{about}: tokens recovered", right, more=True))
    if eta is None:
        return
    sent = SAP(eta=eta).simulate(minilm, few, CUT, rng)

    def timed(**settings: int) -> tuple[Ints, float]:
        start = time.process_time()
        return guess(few, sent, **settings), time.process_time() - start

    with threads(1):
        (narrow, short), (wide, long) = timed(), timed(candidates=len(minilm.embeddings))
    same = (narrow == wide)[~few.special.numpy()].mean()
    comparison.report(
        Figure("  as among all words", same, 0.98, 0.95, more=True),
        Figure("  time among all words over this", long / short, 3, 1.5, more=True),
    )


def test_exposure(comparison):
    """Exact exposure of ten canaries of one sentence against that of one, in CPU time.

    Their 10^6 secrets are ranked once; each further sentence takes as long again.
    """
    base, task = load_backbone("dialogue-gpt"), load_task("dialogues").limited(100, 0)
    form, attack = "My order number is {digits}", CanaryExposure(releases="last")

    def network() -> LanguageModel:
        return LanguageModel(base, TrainSettings())

    rows = np.zeros(1, np.int64)
    sent = (Channel.MODEL, "train", 0, "customer", "public", 0, rows)
    seen = Transcript((Message(*sent, vector_of(network()).numpy()[None]),))
    knowledge = Knowledge(0, "cpu", base=base, network=network, canaries=(form,))

    def seconds(each: int) -> float:
        plant = Plant(canaries=(form,), copies=(1,), each=each, unseen=0)
        truth = Truth({}, {}, {}, plant_task(task, plant, 0))
        start = time.process_time()
        guesses = attack.guess(seen, knowledge, np.random.default_rng(0))
        score_canaries([guess for guess in guesses if guess.measure == "exposure"], seen, truth)
        return time.process_time() - start

    seconds(1)  # the public model's scores of the sentence are cached from here on
    one = seconds(1)
    many = comparison.measure(lambda: seconds(CANARIES), rounds=1)
    name = f"exposure: of {CANARIES} canaries in a sentence over one"
    comparison.report(Figure(name, many / one, 1.5, 3.0))
