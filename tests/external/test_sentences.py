"""The end of a recording and of its attacks: three sentences for a manager, then the table."""

from __future__ import annotations

import io

import pytest
from loops import classifier, sentences, train
from rich.console import Console

from leakboard.bench.contracts.cell import MethodSpec
from leakboard.bench.contracts.record import Estimate, Leak
from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.bench.external.recorder import Recorder
from leakboard.bench.external.sentences import (
    attack_sentences,
    joined,
    label_sentences,
    recording_sentences,
)

IDS, LABELS = sentences()
pytestmark = pytest.mark.usefixtures("from_nowhere")


def leak(name, goal, value, half=0.05, chance=0.5, view="train", metric="accuracy", **more):
    success = Estimate(
        value=value, low=value - half, high=min(1.0, value + half), n=48, chance=chance
    )
    return Leak(
        attack=MethodSpec(name=name),
        status="ok",
        goal=goal,
        channel=Channel.LOGIT_GRADIENTS,
        metric=metric,
        success=success,
        view=view,
        **more,
    )


READ = leak("eia-nn", Goal.INVERSION, 0.97, chance=0.1, metric="token accuracy")
PART = leak("kmeans", Goal.LABEL, 0.75)
CHANCE = leak("norm", Goal.LABEL, 0.52)
PEAK = leak("spectral", Goal.LABEL, 0.9, view="worst")


def test_what_is_read_how_surely_and_what_next():
    assert attack_sentences([PART, READ, CHANCE]) == [
        "The provider can read your texts and a part of your labels.",
        "The attack eia-nn recovers 97 % of the tokens (95 % interval 92 % to 100 %; guessing: 10 %; 48 examples) from "
        "gradients of the answers.",
        "Next: hide texts and labels before you send them (`leakboard choose` compares defenses), then record and attack "
        "again.",
    ]


def test_chance_is_called_no_evidence_and_no_privacy():
    first, second, third = attack_sentences([CHANCE])
    assert first.startswith("No attack is shown to read anything")
    assert "no evidence of privacy" in second
    assert "without protection" in third


def test_the_worst_of_many_moments_is_no_evidence():
    assert attack_sentences([CHANCE, PEAK])[0].startswith("No attack is shown")
    assert attack_sentences([PEAK])[0] == "The provider can read your labels."


def test_what_the_untrained_model_shows_is_not_counted():
    floor = Estimate(value=0.76, low=0.7, high=0.8, n=48, chance=0.5)
    assert attack_sentences([leak("kmeans", Goal.LABEL, 0.75, floor=floor)])[0].startswith("No att")


def test_the_numbering_of_labels_is_told_and_doubted_below_chance():
    assert label_sentences([PART], ["ham", "spam"]) == [
        "Labels are numbered in sorted order: ham = 0, spam = 1."
    ]
    assert label_sentences([], list("abcdefghijkl"))[0].endswith("j = 9, ….")
    wrong = leak("logit-gradient", Goal.LABEL, 0.05)
    assert label_sentences([PART, wrong, leak("norm", Goal.LABEL, 0.1)], []) == [
        "The attack logit-gradient guesses only 5 % of the labels correctly, clearly less than chance (50 %): the "
        "recording may number its classes differently."
    ]
    unclear = leak("norm", Goal.LABEL, 0.22)
    other = leak("norm", Goal.LABEL, 0.05, metric="AUC")
    assert label_sentences([unclear, other, leak("x", Goal.INVERSION, 0.0)], []) == []


def test_an_attribute_is_named_and_nothing_scored_says_nothing():
    age = leak("aia-mlp", Goal.ATTRIBUTE, 0.95, attribute="age")
    assert attack_sentences([age])[0] == "The provider can read age of the authors."
    skipped = Leak(attack=MethodSpec(name="prior"), status="skipped", reason="x", goal=Goal.LABEL)
    assert attack_sentences([skipped]) == []
    assert [joined(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


def recorded(out):
    shown, model = io.StringIO(), classifier()
    with Recorder(model, 0, out, examples=IDS, progress=Console(file=shown, width=300)) as recorder:
        train(model, IDS, LABELS)
    return recorder, shown.getvalue()


def test_a_recording_ends_with_what_it_holds_lacks_and_needs(out):
    recorder, text = recorded(out)
    first, second, third = recorder.summary
    assert "12 training examples in 2 epochs: the vector sent for each word" in first
    assert second == "It is complete: it holds every pass of the training for these examples."
    assert "name the public model by base=" in third
    lines = text.splitlines()
    assert [line[2:] for line in lines[:3]] == [*recorder.summary]
    assert any(line.split()[:3] == ["logit-gradients", "customer", "2"] for line in lines)


def test_what_a_recording_lacks_is_said(out):
    manifest = recorded(out)[0].manifest
    known = manifest.model_copy(update={"model_hash": "a", "model": "minilm"})
    assert (
        f"`leakboard attack {out} --model minilm --truth FILE`"
        in recording_sentences(known, out)[2]
    )
    for change, said in (
        ({"cut_short": "Stop: x"}, "ended early (Stop: x)"),
        ({"dropped": {Channel.LOGITS: 5 * 10**6}}, "It lacks 5 MB"),
        ({"left_out": {"examples without a token": 3}}, "It lacks 3 examples without a token."),
    ):
        assert said in recording_sentences(manifest.model_copy(update=change), out)[1]
