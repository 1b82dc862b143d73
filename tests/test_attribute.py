"""Attribute inference: what attackers are told, what is scored, and whether the attacks attack."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from cells import inputs_of, make, run, session_of
from sklearn.neural_network import MLPClassifier

from attacks.aia_finetune import FineTune
from attacks.aia_mlp import HIDDEN, MeanMLP, mean_vectors, standardised
from bench.contracts.channels import Channel
from bench.contracts.guess import Guess
from bench.contracts.seeds import Seeds
from bench.contracts.threat import Goal
from bench.contracts.transcript import Message, Transcript
from bench.methods import registry
from bench.methods.knowledge import Knowledge, Labelled
from bench.running.attacks import attack_all
from bench.running.grants import knowledge_for
from bench.running.pairing import pair
from bench.running.reporting import Silent
from bench.scoring.checks import flags
from bench.scoring.guesses import Truth, score
from bench.suites.suite import load_suite
from bench.tasks.task import Task
from defenses.blackout import Blackout
from defenses.none import NoDefense
from defenses.sap import SAP

SENT = Channel.REPRESENTATIONS
RNG = np.random.default_rng


def granted(attack, defense=None, **fields):
    plan = make(defense or SAP(), attacks=[attack], **fields)
    planned = plan.cells[0]
    inputs, backbone = inputs_of(plan, planned)
    return knowledge_for(planned.pairings[0], planned, inputs, backbone).labelled, inputs


def signal(n=200, width=32, strength=1.5, seed=0, rounds=1):
    """Representations whose mean tells a value, that value, and the knowledge to learn it with."""
    rng = RNG(seed)
    value = rng.integers(2, size=n)
    lengths = rng.integers(3, 8, size=n)
    direction = rng.standard_normal(width) / np.sqrt(width)
    messages = []
    for r in range(rounds):
        vectors = rng.standard_normal((lengths.sum(), width))
        vectors += strength * np.repeat(2 * value - 1, lengths)[:, None] * direction
        vectors = vectors.astype(np.float32)
        vectors.setflags(write=False)
        messages.append(
            Message(SENT, "train", r, "customer", "vendor", 0, np.arange(n), vectors, lengths)
        )
    return Transcript(tuple(messages)), value


def told(value, share=0.5, base=None, classes=2):
    rows = np.arange(int(share * len(value)))
    labelled = Labelled(rows, {"trait": value[rows]}, {"trait": classes})
    return Knowledge(2, "cpu", base=base, labelled=labelled)


def accuracy(attack, seen, value, knowledge):
    (guess,) = attack.guess(seen, knowledge, RNG(0))
    rest = np.setdiff1d(guess.rows, knowledge.labelled.rows)
    return (guess.values == value)[rest].mean()


# What is granted


def test_all_defenses_and_attacks_get_the_same_rows():
    first, inputs = granted(MeanMLP(labelled=0.25), SAP(eta=50))
    for attack, defense in ((MeanMLP, NoDefense()), (FineTune, SAP(eta=50))):
        other, _ = granted(attack(labelled=0.25), defense)
        assert other.rows.tolist() == first.rows.tolist()
    assert len(first.rows) == 12
    assert first.values == {"gender": 2, "age_band": 3}
    for name, values in inputs.task.splits["train"].attributes.items():
        assert first.attributes[name].tolist() == values[first.rows].tolist()


def test_rows_are_recorded_ones_depend_on_the_seed_and_grow_with_the_share():
    draws = {}
    for share in (0.01, 0.1, 0.5):
        draws[share], inputs = granted(MeanMLP(labelled=share), record={"examples": 20})
        assert set(draws[share].rows) < set(inputs.recorded["train"])
    assert [len(d.rows) for d in draws.values()] == [1, 2, 10]
    assert set(draws[0.01].rows) < set(draws[0.1].rows) < set(draws[0.5].rows)
    other, _ = granted(MeanMLP(labelled=0.5), seeds=(1,), record={"examples": 20})
    assert other.rows.tolist() != draws[0.5].rows.tolist()


def test_attack_that_declares_no_labelled_share_is_told_nothing():
    plan = make(SAP())
    inputs, backbone = inputs_of(plan, plan.cells[0])
    for pairing in plan.cells[0].pairings:
        assert knowledge_for(pairing, plan.cells[0], inputs, backbone).labelled is None


def test_a_suite_sweeps_the_labelled_share(tmp_path):
    file = tmp_path / "sweep.yaml"
    file.write_text(
        "name: x\ntask: reviews\ndefenses: none\nattacks: [aia-mlp: {labelled: [0.01, 0.5]}]\n"
    )
    assert load_suite(str(file)).attacks == (MeanMLP(labelled=0.01), MeanMLP(labelled=0.5))


def test_all_attacks_are_those_that_are_not_costly(tmp_path):
    file = tmp_path / "all.yaml"
    file.write_text("name: x\ntask: reviews\ndefenses: none\nattacks: all\n")
    names = {attack.name for attack in load_suite(str(file)).attacks}
    assert names == registry.attacks().keys() - {
        name for name, cls in registry.attacks().items() if cls.costly
    }
    assert "aia-finetune" not in names
    assert "aia-mlp" in names


# What is scored


def test_echo_of_what_was_granted_gets_no_credit():
    labelled, inputs = granted(MeanMLP(labelled=0.5))
    truth = Truth(inputs.tokens, inputs.task.splits, inputs.recorded)
    rows = inputs.recorded["train"]
    true = inputs.task.splits["train"].attributes["gender"][rows]
    echo = np.where(np.isin(rows, labelled.rows), true, 1 - true)
    guess = Guess(Goal.ATTRIBUTE, None, "train", rows, echo, attribute="gender")
    assert score(guess, truth)["success"].value == 0.5
    fields = score(guess, truth, labelled.rows)
    rest = true[~np.isin(rows, labelled.rows)]
    assert fields["success"].value == 0
    assert fields["success"].chance == np.bincount(rest).max() / len(rest)
    assert fields["units"] == fields["success"].n == len(rest) == 24
    assert fields["raw"]["truth"] == rest.tolist()


def test_unknown_values_are_neither_trained_on_nor_scored():
    session, inputs = session_of(NoDefense())
    session.wire.send(Channel.TOKENS, session.train.ids, session.all_rows)
    train = inputs.task.splits["train"]
    unknown = train.attributes["gender"].copy()
    unknown[::3] = -1
    attributes = {"gender": unknown, "age_band": np.full(len(unknown), -1)}
    old = inputs.task
    splits = old.splits | {"train": replace(train, attributes=attributes)}
    inputs = replace(inputs, task=Task(old.name, old.labels, splits, old.attributes))
    attacks = [MeanMLP(labelled=0.5), FineTune(labelled=0.5, epochs=1)]
    planned = make(NoDefense(), attacks=attacks).cells[0]
    leaks = attack_all(
        planned, session.wire.transcript(), inputs, session.backbone, planned.pairings,
        Seeds.of(0), Silent().track,
    )  # fmt: skip
    # An attribute that nobody is known to have is left out, since nothing of it can be scored.
    assert [(leak.status, leak.attribute) for leak in leaks] == [("ok", "gender")] * 2
    told_rows = knowledge_for(planned.pairings[0], planned, inputs, session.backbone).labelled.rows
    scored = np.setdiff1d(np.flatnonzero(unknown >= 0), told_rows)
    assert {leak.units for leak in leaks} == {len(scored)}
    assert all(set(leak.raw["guess"]) <= {0, 1} for leak in leaks)


@pytest.mark.parametrize("attack", [MeanMLP(), FineTune(epochs=1)])
@pytest.mark.parametrize("known", [[], [2]])
def test_missing_classes_are_guessed_about_all_the_same(tiny, attack, known):
    seen, _ = signal(n=40)
    rows = np.arange(4)
    values = np.full(4, -1)
    values[: len(known)] = known
    labelled = Labelled(rows, {"trait": values}, {"trait": 3})
    knowledge = Knowledge(2, "cpu", base=tiny, labelled=labelled)
    (guess,) = attack.guess(seen, knowledge, RNG(0))
    assert guess.rows.tolist() == list(range(40))
    assert set(guess.values) <= {0, 1, 2}
    assert (guess.attribute, guess.view, guess.channel) == ("trait", "train", SENT)


def test_a_share_without_some_value_is_flagged_and_attacked_all_the_same(tmp_path):
    attacks = [cls(labelled=share) for cls in (MeanMLP, FineTune) for share in (0.02, 0.5)]
    (record,) = run(tmp_path, NoDefense(), attacks=attacks)
    raised = flags([record])
    for i, leak in enumerate(record.leaks):
        share = leak.attack.params["labelled"]
        assert leak.status == "ok"
        assert sum(leak.told) == {0.02: 1, 0.5: 24}[share]
        assert len(leak.told) == {"gender": 2, "age_band": 3}[leak.attribute]
        assert ("unseen-class" in raised.get((record.key, i), ())) == (share == 0.02)


# Whether they attack


@pytest.mark.parametrize(
    ("attack", "at_least"), [(MeanMLP(), 0.85), (FineTune(epochs=8, learning_rate=0.01), 0.75)]
)
def test_attribute_in_the_representations_is_found_and_noise_gives_nothing(tiny, attack, at_least):
    seen, value = signal(n=300)
    assert accuracy(attack, seen, value, told(value, base=tiny)) > at_least
    noise, value = signal(n=300, strength=0)
    assert abs(accuracy(attack, noise, value, told(value, base=tiny)) - 0.5) < 0.12


@pytest.mark.parametrize("strength", [0.2, 0.4, 0.8])
def test_network_is_as_good_as_that_of_scikit_learn_on_the_same_features(strength):
    seen, value = signal(n=800, strength=strength)
    knowledge = told(value)
    _, features = mean_vectors(seen, SENT, knowledge)
    x, m = standardised(features).numpy(), len(knowledge.labelled.rows)
    reference = MLPClassifier((HIDDEN,), alpha=0.1, batch_size=32, max_iter=40, random_state=0)
    reference.set_params(early_stopping=True).fit(x[:m], value[:m])
    theirs = (reference.predict(x[m:]) == value[m:]).mean()
    assert accuracy(MeanMLP(), seen, value, knowledge) == pytest.approx(theirs, abs=0.06)


def test_features_are_means_over_tokens_and_then_over_rounds(tiny):
    seen, value = signal(n=20, rounds=3)
    _, features = mean_vectors(seen, SENT, told(value))
    blocks = [np.split(m.values, np.cumsum(m.lengths)[:-1]) for m in seen.messages]
    by_hand = np.mean([[v.mean(0) for v in block] for block in blocks], axis=0)
    assert features.numpy() == pytest.approx(by_hand, abs=1e-6)
    ids, lengths, rows = np.array([5, 6, 7, 8]), np.array([1, 3]), np.arange(2)
    message = Message(Channel.TOKENS, "train", 0, "customer", "vendor", 0, rows, ids, lengths)
    _, features = mean_vectors(Transcript((message,)), Channel.TOKENS, told(value, base=tiny))
    embeddings = tiny.embeddings
    assert torch.allclose(features[0], embeddings[5])
    assert torch.allclose(features[1], embeddings[6:9].mean(0))


@pytest.mark.parametrize("attack", [MeanMLP(), FineTune(epochs=1)])
def test_same_stream_gives_the_same_guesses_and_nothing_given_is_changed(tiny, attack):
    seen, value = signal(n=60, rounds=2)
    knowledge = told(value, base=tiny)
    weights = {k: v.clone() for k, v in tiny.model.state_dict().items()}
    sent = [m.values.copy() for m in seen.messages]
    first, second = (attack.guess(seen, knowledge, RNG(3))[0].values for _ in range(2))
    assert first.tolist() == second.tolist()
    assert all(torch.equal(v, weights[k]) for k, v in tiny.model.state_dict().items())
    assert not any(p.requires_grad for p in tiny.model.parameters())
    assert all((m.values == s).all() for m, s in zip(seen.messages, sent, strict=True))


def test_nothing_is_found_on_blackout(tmp_path):
    attacks = [MeanMLP(labelled=0.25), FineTune(labelled=0.25, epochs=1)]
    (record,) = run(tmp_path, Blackout(), limit=300, attacks=attacks)
    assert [leak.status for leak in record.leaks] == ["ok"] * 4
    for leak in record.leaks:
        assert leak.success.low <= leak.success.chance, leak.attack.name


def test_a_quarter_of_labels_certifies_on_undefended_text(minilm):
    session, inputs = session_of(NoDefense(), model="minilm", limit=1500)
    session.wire.send(Channel.TOKENS, session.train.ids, session.all_rows)
    attacks = [MeanMLP(labelled=0.25)]
    planned = make(NoDefense(), model="minilm", limit=1500, attacks=attacks).cells[0]
    leaks = attack_all(
        planned, session.wire.transcript(), inputs, minilm, planned.pairings,
        Seeds.of(0), Silent().track,
    )  # fmt: skip
    assert {leak.attribute: leak.certificate for leak in leaks} == {
        "gender": True,
        "age_band": True,
    }


def test_a_pairing_without_attributes_says_so():
    plan = make(SAP(), attacks=[MeanMLP()])
    task = next(iter(plan.tasks.values()))
    bare = Task(task.name, task.labels, task.splits)
    pairing = pair(MeanMLP(), SAP(), bare, 0)
    assert not pairing.goals
    assert "no private attributes" in pairing.refused[Goal.ATTRIBUTE]
