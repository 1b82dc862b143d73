"""Attribute inference: whether the attacks attack, and what they leave as it was."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from cells import first_scene, make, run
from sklearn.neural_network import MLPClassifier

from leakboard.attacks.aia_finetune import FineTune
from leakboard.attacks.aia_mlp import HIDDEN, MeanMLP, guessed, mean_vectors, standardised
from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.exchange.wire import Wire
from leakboard.bench.methods.knowledge import Knowledge, Labelled
from leakboard.bench.running.attacks import attack_all
from leakboard.bench.running.pairing import pair
from leakboard.bench.scoring import NEEDED, advantage_low
from leakboard.bench.tasks.task import Task
from leakboard.defenses.blackout import Blackout
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP

SENT = Channel.REPRESENTATIONS
RNG = np.random.default_rng


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


@pytest.mark.parametrize(
    ("attack", "at_least"), [(MeanMLP(), 0.85), (FineTune(epochs=8, learning_rate=0.01), 0.75)]
)
def test_attribute_in_the_representations_is_found_and_noise_gives_nothing(tiny, attack, at_least):
    seen, value = signal(n=300)
    assert accuracy(attack, seen, value, told(value, base=tiny)) > at_least
    noise, value = signal(n=300, strength=0)
    assert abs(accuracy(attack, noise, value, told(value, base=tiny)) - 0.5) < 0.12


@pytest.mark.parametrize(
    ("attack", "at_least"), [(MeanMLP(), 0.85), (FineTune(epochs=8, learning_rate=0.01), 0.75)]
)
def test_values_that_are_told_belong_to_their_rows_wherever_these_stand(tiny, attack, at_least):
    seen, value = signal(n=300)
    (message,) = seen.messages
    names = np.sort(RNG(1).choice(5000, 300, replace=False))  # of rows, not their places
    rows = np.sort(RNG(2).choice(300, 150, replace=False))
    labelled = Labelled(names[rows], {"trait": value[rows]}, {"trait": 2})
    knowledge = Knowledge(2, "cpu", base=tiny, labelled=labelled)
    (guess,) = attack.guess(
        Transcript((replace(message, rows=names),)), knowledge, np.random.default_rng(0)
    )
    rest = np.setdiff1d(np.arange(300), rows)
    assert (guess.values == value)[rest].mean() > at_least


def test_where_folds_say_that_nothing_was_learnt_the_most_frequent_value_is_guessed():
    rng = RNG(0)
    x, y = rng.standard_normal((300, 40)), rng.random(300) < 0.3
    features = torch.from_numpy(x).float()
    found = guessed(features, features[:200], torch.from_numpy(y[:200]).long(), 2, 0)
    assert found.tolist() == [0] * 300
    right = torch.from_numpy(x[:, 0] > 0).long()  # and where there is something it is learnt
    found = guessed(features, features, right, 2, 0)
    assert (found == right).float().mean() > 0.9


def test_features_have_no_mean_and_one_scale_each():
    x = torch.from_numpy(RNG(0).standard_normal((50, 3)) * [1, 20, 0] + [5, -3, 2]).float()
    found = standardised(x)
    torch.testing.assert_close(found.mean(0), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(
        found.var(0, unbiased=False), torch.tensor([1.0, 1, 0]), atol=1e-3, rtol=0
    )


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
    scene = first_scene(NoDefense(), model="minilm", limit=1500, attacks=[MeanMLP(labelled=0.25)])
    wire = Wire(NoDefense.emits, scene.inputs.recorded)
    session = scene.session(wire)
    wire.send(Channel.TOKENS, session.train.ids, session.all_rows)
    leaks = attack_all(scene, wire.transcript())
    assert {leak.attribute: advantage_low(leak) >= NEEDED for leak in leaks} == {
        "gender": True,
        "age_band": True,
    }


def test_a_pairing_without_attributes_says_so():
    plan = make(SAP(), attacks=[MeanMLP()])
    task = next(iter(plan.tasks.values()))
    bare = Task(task.name, task.labels, task.splits)
    pairing = pair(MeanMLP(), SAP(), bare, 0)
    assert not pairing.goals
    assert "no private attributes" in pairing.skip_reasons[Goal.ATTRIBUTE]
