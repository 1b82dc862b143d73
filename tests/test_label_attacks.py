"""Label attacks: what they find, what they survive, and what splitting a gradient is worth."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from cells import fine_tuned
from numpy.testing import assert_allclose

from attacks.kmeans import Clusters
from attacks.logreg import LogReg
from attacks.norm import Norm
from attacks.optimiser_inversion import OptimiserInversion, explained, moved, update
from attacks.spectral import Spectral
from attacks.unmix import Unmix, concentrated, oriented
from attacks.xgboost import XGBoost
from bench.attacking.adapter_gradients import (
    MOMENTS,
    adapter_of,
    features,
    load,
    per_example,
    principal,
    with_adapter_gradients,
)
from bench.attacking.label_leakage import ToldLabelAttack, few, matrices
from bench.contracts.channels import Channel
from bench.contracts.errors import MissingExtra
from bench.contracts.transcript import Message, Transcript
from bench.exchange.calls import batches
from bench.methods.knowledge import Knowledge
from bench.running.attacks import asked
from bench.scoring.moments import Look, permuted, scored
from defenses.none import NoDefense

BLIND = [Spectral(), Norm(), Clusters()]
TOLD = [LogReg(), XGBoost()]
EVERY = [*BLIND, *TOLD]


def named(attack):
    return attack.name


def sent(x, moment=0, part=0, channel=Channel.ACTIVATIONS, rows=None, recipient="vendor", step=0):
    rows = np.arange(len(x)) if rows is None else rows
    x = np.asarray(x, np.float32)
    return Message(channel, "train", 0, "vendor", recipient, part, rows, x, None, step, moment)


def looks_of(attack, seen, labels, classes=2, **knowledge):
    """What an attack guesses, as it is scored; every guess is about every row."""
    known = Knowledge(classes=classes, device="cpu", **knowledge)
    guesses = asked(attack, seen, known, np.random.default_rng(0), labels)
    null = permuted(labels)
    for guess in guesses:
        assert sorted(guess.rows) == sorted(set(guess.rows))
        assert np.isfinite(guess.values).all()
    return [
        Look(g, g.moment or 0, np.asarray(g.values), labels[g.rows], null[:, g.rows])
        for g in guesses
    ]


def success(attack, seen, labels, channel=None, **more):
    """Success at the worst moment."""
    looks = looks_of(attack, seen, labels, **more)
    worst, _ = scored([k for k in looks if channel in (None, k.guess.channel)], 2)
    return worst["success"]


# What they find


def planted(kind, n=240, d=12, classes=2):
    """Rows in which labels show as that kind of structure."""
    rng = np.random.default_rng(0)
    y = rng.integers(classes, size=n)
    x = rng.standard_normal((n, d))
    if kind == "length":
        return x * (1 + 2 * y)[:, None], y
    return x + 6 * np.eye(d)[y], y


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("attack", EVERY, ids=named)
def test_attack_finds_the_structure_that_it_is_made_for(attack, classes):
    x, y = planted("length" if attack.name == "norm" else "place", classes=classes)
    worst, _ = scored(looks_of(attack, Transcript((sent(x),)), y, classes), classes)
    assert worst["success"].value > (0.9 if classes == 2 or attack.measure != "auc" else 0.7)
    assert worst["success"].low > worst["success"].chance


@pytest.mark.parametrize("attack", EVERY, ids=named)
def test_attack_finds_nothing_in_noise(attack):
    x = np.random.default_rng(1).standard_normal((240, 12))
    y = np.arange(240) % 2
    found = success(attack, Transcript((sent(x),)), y)
    assert found.low <= found.chance


def test_logistic_regression_learns_from_principal_axes_of_which_most_hold_next_to_nothing():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=90)
    x = np.outer(2 * y - 1, rng.standard_normal(500)) + 0.1 * rng.standard_normal((90, 500))
    axes = principal([torch.tensor(x[:, :200]), torch.tensor(x[:, 200:])])
    assert success(LogReg(), Transcript((sent(axes),)), y).value > 0.95


def test_boosted_trees_look_at_few_moments_and_the_others_at_all():
    x, y = planted("place", n=40)
    seen = Transcript(tuple(sent(x, moment, step=moment) for moment in range(9)))
    assert len(looks_of(Norm(), seen, y)) == 9
    assert [k.guess.moment for k in looks_of(XGBoost(), seen, y)] == [0, 4, 8]
    assert few([3, 5], 5) == [3, 5]
    assert few([], 3) == []


@pytest.mark.parametrize("attack", TOLD, ids=named)
def test_attack_that_is_told_labels_is_never_told_those_of_the_rows_it_guesses(attack):
    x, y = planted("place", n=60)

    class Spy(ToldLabelAttack):
        """Notes what it was given."""

        name = "spy"
        folds = attack.folds

        def learn(self, x, y, unknown, rng):
            given.append((x, y, unknown))
            return np.zeros(len(unknown), np.int64)

    given = []
    looks_of(Spy(), Transcript((sent(x),)), y)
    assert len(given) == attack.folds
    for known, told, unknown in given:
        assert len(known) == len(told) == 60 - len(unknown)
        assert not (known[:, None] == unknown[None]).all(2).any()
    assert sum(len(unknown) for *_, unknown in given) == 60


def test_missing_xgboost_is_told_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    x, y = planted("place", n=20)
    with pytest.raises(MissingExtra, match=r"XGBoost.*pip install 'leakboard\[cpu\]'"):
        looks_of(XGBoost(), Transcript((sent(x),)), y)


# What they survive

ODD = {
    "zero rows": np.zeros((30, 4)),
    "equal rows": np.ones((30, 4)) * 1e-20,
    "one dimension": np.random.default_rng(0).standard_normal((30, 1)),
    "constant columns": np.c_[np.random.default_rng(0).standard_normal((30, 2)), np.ones(30)],
    "huge": np.random.default_rng(0).standard_normal((30, 4)) * 1e15,
    "more columns than rows": np.random.default_rng(0).standard_normal((30, 99)),
}


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("attack", EVERY, ids=named)
def test_odd_matrix_gives_a_guess_that_can_be_scored(attack, what):
    found = success(attack, Transcript((sent(ODD[what]),)), np.arange(30) % 2)
    assert 0 <= found.low <= found.value <= found.high <= 1


@pytest.mark.parametrize("attack", EVERY, ids=named)
@pytest.mark.parametrize("labels", [[0, 0, 0, 0], [0], [0, 0, 1], [0, 2, 2, 2, 1]])
def test_moment_with_few_rows_or_one_class_is_guessed_about(attack, labels):
    y = np.array(labels)
    x = np.random.default_rng(0).standard_normal((len(y), 3))
    looks = looks_of(attack, Transcript((sent(x),)), y, classes=3)
    assert [len(look.values) for look in looks] == [len(y)]


def test_mean_of_the_vectors_of_an_example_stands_for_it():
    values = np.array([[1.0], [3.0], [5.0]], np.float32)
    message = replace(sent(values), rows=np.array([4, 7]), lengths=np.array([2, 1]))
    (matrix,) = matrices(Transcript((message,)))
    assert matrix.values.tolist() == [[2.0], [5.0]]


# Gradients of the adapter, and gradients that were split


@pytest.fixture(scope="module")
def trained():
    """A transcript of plain fine-tuning, its labels, and the vendor's model."""
    session, inputs, _ = fine_tuned(
        NoDefense(), limit=512, train={"learning_rate": 3e-3, "batch_size": 64}
    )
    labels = inputs.task.splits["train"].labels
    return session.wire.transcript(), labels, lambda: session.network()


def split(seen, m, servers=1, noise=1000.0):
    """The transcript with each gradient sent as m vectors, of `noise` times its variance."""
    rng, messages = np.random.default_rng(0), []
    for message in seen.messages:
        if message.channel != Channel.GRADIENTS:
            messages.append(message)
        elif message.moment is not None:
            g = message.values.astype(float)
            alpha = rng.uniform(0.5, 2, m) * rng.choice([-1, 1], m)
            drawn = rng.standard_normal((m - 1, *g.shape)) * np.sqrt(noise) * g.std()
            last = (g - np.tensordot(alpha[:-1], drawn, 1)) / alpha[-1]
            for j, vector in enumerate([*drawn, last]):
                who = f"server-{j}" if servers > 1 else "vendor"
                values = vector.astype(np.float32)
                messages.append(replace(message, part=j, values=values, recipient=who))
    return Transcript(tuple(messages))


def test_gradients_of_single_examples_are_those_that_one_pass_each_gives(trained):
    seen, _, network_of = trained
    network = network_of()
    ((_, sent_),) = batches(split(seen, 2), 1).items()
    batch = replace(sent_[0], vectors=sent_[0].vectors / np.abs(sent_[0].vectors).max())
    found = per_example(network, batch)
    assert len(found) == 2
    h = features(network, batch.tokens, torch.tensor(batch.adapter))
    weights = list(adapter_of(network).values())
    for vector, gradients in zip(batch.vectors, found, strict=True):
        for row in range(3):
            one = torch.zeros_like(h)
            one[row] = torch.tensor(vector[row])
            expected = torch.autograd.grad(h, weights, one, retain_graph=True)
            for ours, theirs in zip(gradients, expected, strict=True):
                assert_allclose(ours[row], theirs.flatten(), atol=1e-5, rtol=1e-3)


def test_adapter_is_loaded_as_it_was_sent(trained):
    _, _, network_of = trained
    network = network_of()
    vector = torch.randn(sum(p.numel() for p in adapter_of(network).values()))
    load(network, vector)
    assert torch.equal(torch.cat([p.flatten() for p in adapter_of(network).values()]), vector)


def test_principal_axes_keep_norms_and_distances():
    x = torch.randn(7, 30, generator=torch.Generator().manual_seed(0))
    found = principal([x[:, :20], x[:, 20:]])
    assert found.shape == (7, 7)
    assert_allclose(found @ found.T, x @ x.T, atol=1e-4)


def test_adapter_gradients_are_added_per_recipient_and_part_and_give_the_labels_away(trained):
    seen, labels, network_of = trained
    for split_, parts in ((seen, 1), (split(seen, 3), 3)):
        more = with_adapter_gradients(split_, network_of())
        added = [m for m in more.messages if m.channel == Channel.ADAPTER_GRADIENTS]
        assert len(added) == MOMENTS * parts
        assert {m.part for m in added} == set(range(parts))
        for message in added:
            sent_ = more.collect(Channel.TOKENS, round=None, moment=message.moment)
            assert sorted(message.rows) == sent_.rows.tolist()
    found = success(
        Spectral(), with_adapter_gradients(seen, network_of()), labels, Channel.ADAPTER_GRADIENTS
    )
    assert found.value > 0.95
    without = Transcript(tuple(m for m in seen.messages if m.channel != Channel.PARAMETERS))
    assert with_adapter_gradients(without, network_of()) is without


@pytest.mark.parametrize("noise", [1.0, 1e3, 1e6])
@pytest.mark.parametrize(("m", "rank"), [(1, 1), (2, 1), (2, 2), (6, 1), (6, 2)])
def test_one_combination_of_the_span_is_found_whatever_the_scalars(m, rank, noise):
    rng = np.random.default_rng(m)
    g = rng.standard_normal((32, rank)) @ rng.standard_normal((rank, 96))
    drawn = np.sqrt(noise) * rng.standard_normal((m - 1, 32, 96))
    mixed = np.tensordot(rng.standard_normal((m, m)), np.stack([g, *drawn]), 1)
    found = concentrated(mixed.astype(np.float32))
    assert abs(np.sum(found * g)) / np.linalg.norm(g) > 0.99
    assert np.linalg.norm(found) == pytest.approx(1)


def test_zero_and_repeated_vectors_are_no_trouble():
    assert not concentrated(np.zeros((2, 4, 3))).any()
    g = np.outer(np.arange(4.0), np.ones(3))
    assert_allclose(np.abs(concentrated(np.stack([g, g]))), g / np.linalg.norm(g), atol=1e-6)


def test_sign_of_a_gradient_is_told_by_most_examples_not_by_the_longest_rows():
    h = np.array([[2.0, 0], [1, 0], [1, 0], [-2, 0], [-2, 0]])
    gradient = -np.sign(h)
    gradient[0] *= -9  # a row that is not learnt yet
    for turned in (gradient, -gradient):
        assert_allclose(oriented(turned, h), gradient)
    assert_allclose(oriented(-gradient, None), -gradient)


@pytest.mark.parametrize("m", [2, 4])
def test_split_gradients_hide_labels_from_plain_attacks_and_not_from_unmixing(trained, m):
    seen, labels, _ = trained
    hidden = success(Spectral(), split(seen, m), labels, Channel.GRADIENTS)
    assert hidden.low <= hidden.chance
    found = success(Unmix(), split(seen, m), labels)
    assert found.value > 0.95
    assert found.value == pytest.approx(success(Unmix(), seen, labels).value, abs=0.02)


def test_servers_that_do_not_collude_have_nothing_to_unmix(trained):
    seen, labels, _ = trained
    looks = looks_of(Unmix(), split(seen, 2, servers=2), labels)
    assert {look.guess.recipient for look in looks} == {"server-0", "server-1"}
    worst, _ = scored(looks, 2)
    assert worst["success"].low <= worst["success"].chance


@pytest.mark.parametrize("m", [1, 2, 3])
def test_update_of_the_adapter_tells_the_secret_scalars(trained, m):
    seen, labels, network_of = trained
    hidden = seen if m == 1 else split(seen, m)
    found = success(
        OptimiserInversion(), hidden, labels, Channel.GRADIENTS, network=network_of, base=object()
    )
    assert found.value > 0.9
    assert found.low > found.chance


def test_server_with_one_vector_still_learns_from_what_the_update_does(minilm):
    train = {"batch_size": 64, "epochs": 1}
    session, inputs, _ = fine_tuned(NoDefense(), model="minilm", limit=256, train=train)
    seen, labels = session.wire.transcript(), inputs.task.splits["train"].labels
    one_each = split(seen, 2, servers=2)
    looks = looks_of(OptimiserInversion(), one_each, labels, network=session.network)
    assert {look.guess.channel for look in looks} == {Channel.PARAMETERS}
    worst, _ = scored(looks, 2)
    assert worst["success"].low > worst["success"].chance


def test_activations_are_moved_by_the_last_step_of_a_window_where_what_it_made_is_known(trained):
    seen, _, network_of = trained
    network, batch = network_of(), batches(seen, 0)["vendor", 0][0]
    after = stepped(network, batch)
    x = moved(network, [batch], {batch.step: batch.adapter, batch.step + 1: after})
    g = batch.vectors[0]
    assert np.sum(x * g) < 0  # downhill
    assert not moved(network, [batch], {batch.step: batch.adapter}).any()


def test_update_is_cleared_of_momentum_where_its_neighbours_are_known():
    values = {s: np.array([float(s**2)]) for s in (0, 1, 2, 9)}
    assert update(values, 1) == pytest.approx(3 - 0.9 * 1)
    assert update(values, 0) == pytest.approx(1)
    assert update(values, 2) == pytest.approx(77)
    assert update(values, 9) == pytest.approx(77)
    assert update({4: np.ones(2)}, 4).tolist() == [0, 0]


def test_combination_that_fits_the_update_is_the_gradient_with_its_sign(trained):
    seen, _, network_of = trained
    network = network_of()
    batch = batches(seen, 0)["vendor", 0][0]
    given = batches(split(seen, 3), 0)["vendor", 0][0]
    x = explained(network, given, {0: batch.adapter, 1: stepped(network, batch)})
    g = batch.vectors[0]
    assert np.sum(x * g) / np.linalg.norm(g) > 0.9


def stepped(network, batch):
    """[P] the adapter after the first step of AdamW on the true gradient of a batch."""
    h = features(network, batch.tokens, torch.tensor(batch.adapter))
    weights = list(adapter_of(network).values())
    found = torch.autograd.grad(h, weights, torch.tensor(batch.vectors[0]))
    gradient = torch.cat([g.flatten() for g in found]).numpy()
    return batch.adapter - 1e-3 * np.sign(gradient)
