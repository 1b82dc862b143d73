"""The attack that prompts a model: it prints what was planted often, and nothing where nothing was learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from cells import load_tiny
from released import TEXTS, plan_of, run

from leakboard.attacks import extraction
from leakboard.attacks.extraction import Extraction
from leakboard.bench.backbones.language import LanguageModel
from leakboard.bench.contracts.cell import Plant, TrainSettings
from leakboard.bench.contracts.computing import Memory
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.methods.knowledge import Knowledge
from leakboard.bench.scoring.continuations import PRINTED
from leakboard.bench.scoring.memory import EXTRACTED
from leakboard.bench.tasks.planting import CONTINUED, UNTUNED
from leakboard.bench.tasks.task import Span, Split, Task
from leakboard.defenses.blackout import Blackout
from leakboard.defenses.none import NoDefense

OFTEN = Plant(canaries="my id is {digits}", copies=(60,), unseen=20)
LEARNING = {"tune": "full", "epochs": 12, "learning_rate": 1e-2}
SAMPLED, GREEDY = EXTRACTED["sampled extraction"], EXTRACTED["extraction"]
NAMES = {
    "battery": "parcel", "screen": "refund", "food": "agent", "room": "order",
    "staff": "number", "price": "address", "camera": "phone", "service": "date",
}  # fmt: skip
LINES = tuple(f"call the {word} {name}" for word, name in NAMES.items())
PERSONAL = Task(
    "personal",
    (),
    {
        "train": Split(
            LINES,
            np.zeros(len(LINES), np.int64),
            secrets=tuple((Span(line.rindex(" ") + 1, len(line), "name"),) for line in LINES),
        ),
        "dev": TEXTS.splits["dev"],
    },
)


def leaks_of(defense, task=TEXTS, plant=OFTEN, **settings):
    plan = plan_of(defense, task=task, plant=plant, attacks=(Extraction(),), **settings)
    record = run(plan)
    assert record.status == "ok", record.reason
    assert {leak.status for leak in record.leaks} == {"ok"}, record.leaks
    return {(leak.metric, leak.view): leak for leak in record.leaks}


@pytest.fixture(scope="module")
def undefended():
    return leaks_of(NoDefense(), **LEARNING)


def test_a_secret_that_was_planted_often_is_drawn_and_one_that_was_not_is_not(undefended):
    sampled = undefended[SAMPLED, "planted 60 times"]
    assert sampled.success.value == 1
    assert sampled.success.chance == pytest.approx(1e-4)
    (printed,) = sampled.raw["printed"]
    assert printed >= 7
    never = undefended[SAMPLED, "never planted"]
    assert never.success.value == 0
    assert never.units == 20
    assert (GREEDY, "planted 60 times") in undefended


def test_personal_data_that_were_learned_are_printed_above_what_the_public_model_prints():
    found = leaks_of(
        NoDefense(), PERSONAL, None, tune="full", epochs=200, learning_rate=1e-2, batch_size=4
    )
    assert set(found) == {(metric, "personal data") for metric in PRINTED}
    for metric in PRINTED:
        leak = found[metric, "personal data"]
        assert leak.units == 8
        assert leak.success.value >= 0.75
        assert leak.floor.value <= 0.25
        assert leak.above > 0.5


def test_a_release_of_noise_prints_nothing():
    for leak in leaks_of(Blackout(), PERSONAL, OFTEN.model_copy(update={"copies": (4,)})).values():
        assert leak.success.value == 0


def test_the_last_release_is_prompted_and_the_public_model_beside_it(monkeypatch):
    base, read = load_tiny("tiny-gpt2"), []
    network = LanguageModel(base, TrainSettings())
    asked, computed = list[bool](), list[bool]()
    monkeypatch.setattr(extraction, "restore", lambda network, vector: read.append(int(vector[0])))
    monkeypatch.setattr(extraction, "_PUBLIC", Memory())

    @dataclass(frozen=True)
    class Told:
        """Says which model it was asked to write with."""

        model: object
        head: object
        top_k: int
        temperature: float
        positions: int | None

        def continued(self, prompt, length, tries, draw):
            asked.append(self.model is base.model)
            computed.append(torch.is_autocast_enabled("cpu"))
            return np.full((1 + tries, length), int(self.model is base.model))

    monkeypatch.setattr(extraction, "Writer", Told)
    releases = tuple(
        Message(
            *(Channel.MODEL, "train", round, "customer", "public", 0, np.zeros(1, int)),
            np.full((1, 3), 5 + round, np.float32),
        )
        for round in range(3)
    )
    prompts = base.encode(["call", "the food"], None, 8, opened=True)
    knowledge = Knowledge(0, "cpu", base=base, network=lambda: network, prompts=prompts)
    tuned, public = Extraction().guess(Transcript(releases), knowledge, np.random.default_rng(0))
    assert read == [7]
    assert (tuned.view, tuned.round, tuned.values.max()) == ("", 2, 0)
    assert (public.view, public.round, public.values.min()) == (UNTUNED, -1, 1)
    assert tuned.values.shape == (2, 1 + CONTINUED[1], CONTINUED[0])
    assert asked == [False, False, True, True]
    again = Extraction().guess(Transcript(releases), knowledge, np.random.default_rng(1))
    assert asked == [False, False, True, True, False, False]  # the public one wrote these before
    assert np.array_equal(again[1].values, public.values)
    Extraction(top_k=2).guess(Transcript(releases), knowledge, np.random.default_rng(1))
    assert asked[-2:] == [True, True]  # but not in this way
    assert not any(computed)
    Extraction(precision="bf16").guess(Transcript(releases), knowledge, np.random.default_rng(0))
    assert asked[-4:] == [False, False, True, True]  # in this precision it has not said anything
    assert computed[-4:] == [True] * 4
