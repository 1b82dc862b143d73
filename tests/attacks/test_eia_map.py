"""Inversion with a public language model: what context gives away."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from cells import NOISY, leak_of, load_tiny, run

from leakboard.attacks.eia_learned import Learned
from leakboard.attacks.eia_map import ContextualDenoiser, Denoiser
from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.bench.attacking import inversion
from leakboard.bench.contracts.computing import DEFAULT_CAPACITY, Memory
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.methods.knowledge import Auxiliary, Knowledge
from leakboard.bench.scoring import advantage_low
from leakboard.defenses.blackout import Blackout
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP

SENT = Channel.REPRESENTATIONS
MAP = ContextualDenoiser(sentences=48)
WEIGHTS, QUERY = Learned(sentences=48), Learned(access="query", sentences=48)


@pytest.mark.parametrize("attack", [MAP, WEIGHTS, QUERY], ids=str)
def test_all_tokens_are_found_without_noise_and_the_attack_is_certified(tmp_path, attack):
    (record,) = run(tmp_path, SAP(eta=None), attacks=[attack, NearestNeighbour()])
    for view in ("train", "dev"):
        leak = leak_of(record, attack.name, view)
        assert leak.success.value >= 0.99
        assert advantage_low(leak) > 0.9
        assert leak.success.value >= leak_of(record, "eia-nn", view).success.value - 0.01


@pytest.mark.parametrize("attack", [MAP, WEIGHTS, QUERY], ids=str)
def test_nothing_is_found_in_blackout(tmp_path, attack):
    (record,) = run(tmp_path, Blackout(), attacks=[attack], limit=200)
    assert record.leaks
    for leak in record.leaks:
        assert leak.success.low <= leak.success.chance


TALK = {"task": "dialogues", "model": "tiny-gpt2", "limit": 48}


def test_a_causal_model_that_is_tuned_over_the_wire_is_read_as_an_encoder_is(tmp_path):
    attacks = [MAP, NearestNeighbour()]
    settings = SAP(eta=None), SAP(eta=100.0), NoDefense(head="vendor")
    clear, noisy, plain = run(tmp_path, *settings, attacks=attacks, **TALK)
    for record in (clear, plain):
        assert leak_of(record, "eia-map").success.value == 1
    assert advantage_low(leak_of(clear, "eia-map", "dev")) > 0.9
    near, mapped = (leak_of(noisy, name).success for name in ("eia-nn", "eia-map"))
    assert near.value < 0.9
    assert mapped.value >= near.low


def test_a_causal_model_is_read_behind_a_block(tmp_path):
    attack = ContextualDenoiser(sentences=300, epochs=2, learning_rate=1e-3)
    (record,) = run(tmp_path, SAP(eta=None), attacks=[attack], **TALK | {"cut": 1})
    # Of more words than reviews have, some of which these public texts lack.
    assert leak_of(record, "eia-map").success.value > 0.8


def test_tokens_in_the_clear_are_copied(tmp_path):
    (record,) = run(tmp_path, NoDefense(), attacks=[MAP])
    assert leak_of(record, "eia-map").success.value == 1


@pytest.mark.parametrize(
    "attack",
    [
        Learned(sentences=200, epochs=6),
        Learned(access="query", sentences=200, epochs=6),
        ContextualDenoiser(sentences=200, epochs=6, learning_rate=1e-3),
    ],
    ids=str,
)
def test_most_tokens_are_read_behind_a_block(tmp_path, attack):
    (record,) = run(tmp_path, SAP(eta=None), attacks=[attack], cut=1, limit=200)
    assert leak_of(record, attack.name).success.value > 0.9


def repeated(base, n, rng, words=60):
    """Texts of two words, each said three times: a token is known from its neighbours."""
    ids = torch.from_numpy(rng.choice(np.arange(10, 10 + words), 2 * n)).repeat_interleave(3)
    frame = base.encode(["good good good good good good"] * n, None, 16)
    out = frame.ids.values.clone()
    out[~frame.special] = ids
    return frame.with_ids(out)


def heard(base, tokens, defense, rounds=1, cut=0):
    rng, n = np.random.default_rng(7), np.arange(len(tokens))
    return Transcript(
        tuple(
            Message(
                SENT, "train", r, "customer", "vendor", 0, n,
                defense.simulate(base, tokens, cut, rng).values.numpy(), tokens.lengths.numpy(),
            )
            for r in range(rounds)
        )
    )  # fmt: skip


def right(guess, tokens):
    hit = guess.values.reshape(len(guess.values), -1)[:, 0] == tokens.ids.values.numpy()
    return hit[~tokens.special.numpy()].mean()


def repeated_words(eta, rounds=1):
    base, rng, defense = load_tiny("tiny-bert"), np.random.default_rng(3), SAP(eta=eta)
    public, private = repeated(base, 1200, rng), repeated(base, 200, rng)
    auxiliary = Auxiliary(public, np.zeros(len(public), np.int64))
    knowledge = Knowledge(
        2, "cpu", base=base, mechanism=defense, auxiliary=auxiliary,
        vocabulary=len(base.embeddings),
    )  # fmt: skip
    return heard(base, private, defense, rounds), knowledge, private


DENOISER = ContextualDenoiser(epochs=8, learning_rate=5e-3)


@pytest.fixture(scope="module")
def noisy():
    """What is known of noisy words, for which the denoiser is trained once, and the words."""
    _, knowledge, private = repeated_words(NOISY)
    return knowledge, private


def test_denoiser_beats_nearest_neighbour_and_vectorwise_reading_where_context_decides(noisy):
    knowledge, private = noisy
    seen, found = heard(knowledge.base, private, knowledge.mechanism), {}
    for attack in (NearestNeighbour(), Learned(), DENOISER):
        (guess,) = attack.guess(seen, knowledge, np.random.default_rng(0))
        found[attack.name] = right(guess, private)
    assert found["eia-map"] > found["eia-nn"] + 0.1
    assert found["eia-map"] > found["eia-learned"] + 0.05


def test_several_rounds_say_more_than_one_and_give_as_many_candidates(noisy):
    (knowledge, private), found = noisy, []
    for rounds in (1, 3):
        seen = heard(knowledge.base, private, knowledge.mechanism, rounds)
        (guess,) = DENOISER.guess(seen, knowledge, np.random.default_rng(0))
        assert guess.values.shape == (len(private.ids.values), rounds)
        found.append(right(guess, private))
    assert found[1] > found[0] + 0.05
    (copied,) = NearestNeighbour().guess(seen, knowledge, np.random.default_rng(0))
    ours, theirs = (
        (one.values == private.ids.values.numpy()[:, None]).any(1)[~private.special.numpy()].mean()
        for one in (guess, copied)
    )
    assert ours > theirs + 0.02


@pytest.mark.parametrize("attack", [MAP, WEIGHTS, QUERY], ids=str)
def test_same_seed_same_guesses_and_the_public_model_stays_as_it_is(attack):
    seen, knowledge, _ = repeated_words(NOISY)
    base = knowledge.base
    if attack is QUERY:
        mechanism = knowledge.mechanism
        knowledge = Knowledge(
            2, "cpu", auxiliary=knowledge.auxiliary, vocabulary=knowledge.vocabulary,
            query=lambda tokens, rng: inversion.simulate_vectors(mechanism, base, tokens, 0, rng),
        )  # fmt: skip
    before = {k: v.clone() for k, v in base.model.state_dict().items()}
    public = knowledge.auxiliary
    first, second = (
        # Nothing is remembered of the first.
        attack.guess(seen, replace(knowledge, auxiliary=replace(public, learned=Memory())), rng)[0]
        for rng in (np.random.default_rng(4), np.random.default_rng(4))
    )
    assert first.values.tolist() == second.values.tolist()
    assert all(torch.equal(before[k], v) for k, v in base.model.state_dict().items())
    assert not any(p.requires_grad for p in base.model.parameters())


@pytest.mark.parametrize("rounds", [1, 3])
def test_who_reads_worse_than_the_nearest_neighbour_says_what_that_says(rounds, monkeypatch):
    seen, knowledge, _ = repeated_words(NOISY, rounds)
    monkeypatch.setattr(Denoiser, "read", lambda self, seen: torch.zeros(len(seen[0].values)))
    (guess,) = MAP.guess(seen, knowledge, np.random.default_rng(0))
    (plain,) = NearestNeighbour().guess(seen, knowledge, np.random.default_rng(0))
    assert guess.values.shape == (len(plain.values), rounds)
    assert guess.values.tolist() == plain.values.tolist()


def test_what_was_learned_of_a_mechanism_reads_all_cells_with_it_and_no_other(monkeypatch):
    seen, knowledge, _ = repeated_words(NOISY)
    trained, fit = [], inversion.fit
    monkeypatch.setattr(inversion, "fit", lambda *args: trained.append(1) or fit(*args))
    first, later = (
        MAP.guess(seen, knowledge, np.random.default_rng(seed))[0].values for seed in (0, 1)
    )
    assert first.tolist() == later.tolist()
    assert len(trained) == 1
    for attack, mechanism in (
        (MAP, SAP(eta=NOISY + 1)),
        (ContextualDenoiser(sentences=49), SAP(eta=NOISY)),
    ):
        other = replace(knowledge, mechanism=mechanism)
        attack.guess(seen, other, np.random.default_rng(0))
    assert len(trained) == 3


def test_what_is_learned_does_not_depend_on_what_was_learned_before():
    one, other = Memory(), Memory()
    one.recall("first", lambda rng: rng.random())
    found = [memory.recall("second", lambda rng: rng.random()) for memory in (one, other)]
    assert found[0] == found[1] != one.recall("first", lambda rng: None)


def test_memory_forgets_what_was_not_asked_for_longest():
    memory = Memory()
    for name in [*range(DEFAULT_CAPACITY), 0, DEFAULT_CAPACITY]:
        memory.recall(str(name), lambda rng, name=name: name)
    assert memory.recall("0", lambda rng: "anew") == 0
    assert memory.recall("1", lambda rng: "anew") == "anew"
