"""The attack on canaries, on a model that saw some of them often."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from cells import load_tiny
from released import plan_of, run

from leakboard.attacks import canary_exposure
from leakboard.attacks.canary_exposure import CanaryExposure
from leakboard.bench.attacking.canaries import expected_unseen
from leakboard.bench.backbones.language import LanguageModel
from leakboard.bench.contracts.cell import Plant, TrainSettings
from leakboard.bench.contracts.computing import Memory
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.methods.knowledge import Knowledge
from leakboard.bench.tasks.planting import UNTUNED
from leakboard.defenses.none import NoDefense


def test_attack_on_canaries_finds_what_was_planted_often_and_not_what_was_not():
    plant = Plant(canaries="my id is {digits}", copies=(60,), unseen=20)
    attack, settings = CanaryExposure(releases="last"), {"tune": "full", "epochs": 6}
    plan = plan_of(NoDefense(), plant=plant, attacks=(attack,), learning_rate=1e-2, **settings)
    leaks = [leak for leak in run(plan).leaks if leak.metric.startswith("exposure")]
    gained, sixty, no_gain, never = leaks
    assert [leak.metric for leak in leaks] == ["exposure gained", "exposure"] * 2
    assert sixty.success.value > 8
    assert never.success.low < expected_unseen(10**6) < never.success.high
    assert gained.success.value > 6
    assert no_gain.success.low < 0 < no_gain.success.high


@pytest.fixture
def read(monkeypatch):
    """What the attack makes of three releases, of which each is a number, as it is read."""
    base, now = load_tiny("tiny-gpt2"), []
    monkeypatch.setattr(
        canary_exposure, "restore", lambda network, vector: now.append(int(vector[0]))
    )
    asked, computed = [], []

    def candidates(model, *_):
        asked.append(model is base.model)
        computed.append(torch.is_autocast_enabled("cpu"))
        return np.full(10, 3 if model is base.model else now[-1], np.float32)

    monkeypatch.setattr(canary_exposure, "_BEFORE", Memory())
    monkeypatch.setattr(canary_exposure, "candidates", candidates)

    def printed(model, head, tokenizer, before, length, beams):
        assert before == "my id is"
        return [f" {now[-1]}23456 and", "12345", "12a456"][:beams]

    monkeypatch.setattr(canary_exposure, "beam_search", printed)
    seen = Transcript(
        tuple(
            Message(
                *(Channel.MODEL, "train", round, "customer", "public", 0, np.zeros(1, int)),
                np.full((1, 3), 5 + round, np.float32),
                None,
            )
            for round in range(3)
        )
    )
    network = LanguageModel(base, TrainSettings())
    fresh = copy.deepcopy(network).eval()
    for learned in network.trained():
        learned.data += 0.01
    forms = ("my id is {digits}", "my id is {digits}.")
    knowledge = Knowledge(0, "cpu", base=base, network=lambda: network, canaries=forms)

    def guesses(**fields):
        return CanaryExposure(**fields).guess(seen, knowledge, np.random.default_rng(0))

    def of_fresh():
        given = replace(knowledge, network=lambda: fresh)
        return CanaryExposure().guess(seen, given, np.random.default_rng(0))

    guesses.asked, guesses.computed, guesses.of_fresh = asked, computed, of_fresh
    return guesses


def test_each_release_is_ranked_by_the_model_that_was_handed_out_after_that_epoch(read):
    exposures = [guess for guess in read() if guess.measure == "exposure" and not guess.view]
    assert [(g.round, g.values.mean(), g.values.shape) for g in exposures] == [
        (0, 5, (2, 10)),
        (1, 6, (2, 10)),
        (2, 7, (2, 10)),
    ]


def test_the_last_release_alone_is_read_where_no_more_is_asked_for(read):
    guesses = (guess for guess in read(releases="last") if guess.measure == "exposure")
    (guess,) = (guess for guess in guesses if not guess.view)
    assert (guess.round, guess.values.mean()) == (2, 7)


def test_the_public_model_is_asked_once_for_all_cells(read):
    for _ in range(2):
        (before,) = (guess for guess in read() if guess.view == UNTUNED)
        assert before.values.tolist() == [[3] * 10] * 2
    assert sum(read.asked) == 2  # of two sentences


def test_models_are_asked_in_the_precision_that_was_chosen_and_each_answer_is_kept_by_itself(read):
    for precision in ("float32", "bf16", "bf16"):
        read(releases="last", precision=precision)
    # The public model of two sentences, then the released one: once in each precision, and not again.
    assert read.asked == [True, True, False, False] * 2 + [False, False]
    assert read.computed == [False] * 4 + [True] * 6


def test_a_model_that_was_not_tuned_is_the_public_one_and_not_ranked_again(read):
    ranked = [guess for guess in read.of_fresh() if guess.measure == "exposure"]
    # Before training, and after each of three releases.
    assert [guess.values.max() for guess in ranked] == [3] * 4
    assert read.asked == [True, True]


def test_the_precision_of_before_is_not_told_so_that_older_records_stand():
    assert CanaryExposure().params == {"releases": "all"}
    assert CanaryExposure(precision="bf16").params == {"releases": "all", "precision": "bf16"}


def test_the_final_model_prints_digits_or_nothing(read):
    greedy, beams = (guess for guess in read() if guess.measure != "exposure")
    assert greedy.round == beams.round == 2
    assert greedy.values.tolist() == [[723456], [723456]]
    assert beams.values.tolist() == [[723456, -1, -1]] * 2
