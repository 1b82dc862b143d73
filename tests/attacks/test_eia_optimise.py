"""Inversion by optimisation: it finds the words, and what makes it quick does not make it weaker."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import DEEP, leak_of, load_tiny, run

from leakboard.attacks import eia_optimise
from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.attacks.eia_optimise import Optimise
from leakboard.attacks.logit_gradient import LogitGradient
from leakboard.bench.attacking.discriminant import Discriminant
from leakboard.bench.attacking.relaxation import Choice, Logits, Vectors
from leakboard.bench.backbones.backbone import Backbone
from leakboard.bench.backbones.ragged import Tokens
from leakboard.bench.contracts.arrays import Ints
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.methods.knowledge import Knowledge
from leakboard.bench.scoring import NEEDED, advantage_low
from leakboard.defenses.blackout import Blackout
from leakboard.defenses.sap import SAP

SENT = Channel.REPRESENTATIONS
QUICK = (NearestNeighbour(), LogitGradient(), Optimise())


def test_optimisation_reads_clear_representations_and_little_under_much_noise(tmp_path):
    clear, noisy = run(tmp_path, SAP(eta=None), SAP(eta=1.0), attacks=QUICK, **DEEP)
    for view in ("train", "dev"):
        found = leak_of(clear, "eia-optimise", view)
        assert found.success.value > 0.99
        assert advantage_low(found) >= NEEDED
        assert leak_of(noisy, "eia-optimise", view).success.value < 0.2


def test_optimisation_reads_a_causal_model_that_is_tuned_over_the_wire_behind_its_blocks(tmp_path):
    talk = DEEP | {"task": "dialogues", "model": "tiny-gpt2", "limit": 4}
    defenses = SAP(eta=None), SAP(eta=None, head="customer")
    clear = run(tmp_path, *defenses, attacks=(Optimise(),), **talk)
    (noisy,) = run(tmp_path, SAP(eta=1.0), attacks=(Optimise(),), **talk | {"limit": 2})
    for record in clear:
        for view in ("train", "dev"):
            found = leak_of(record, "eia-optimise", view)
            assert found.success.value > 0.99
            assert advantage_low(found) >= NEEDED
    assert leak_of(noisy, "eia-optimise").success.value < 0.2


def test_optimisation_refuses_the_embedding_cut_and_finds_nothing_in_blackout(tmp_path):
    shallow, deep = run(
        tmp_path, Blackout(), attacks=[Optimise(steps=5)], **DEEP | {"cut": (0, 1), "limit": 200}
    )
    assert "embedding cut" in shallow.leaks[0].reason
    for leak in deep.leaks:
        assert leak.success.low <= leak.success.chance


def heard(vectors, lengths, rounds=1):
    """A transcript in which the same vectors were sent in each round."""
    n = np.arange(len(lengths))
    return Transcript(
        tuple(
            Message(SENT, "train", r, "customer", "vendor", 0, n, vectors, lengths)
            for r in range(rounds)
        )
    )


@pytest.mark.parametrize("relaxation", ["embeddings", "logits"])
def test_both_relaxations_find_all_tokens_of_unequal_sentences_whatever_the_batch(relaxation):
    base = load_tiny("tiny-bert")
    tokens = base.encode(
        ["bad", "the food was very good and the staff friendly", "not good"], None, 32
    )
    words = tokens.ids.with_values(base.embeddings[tokens.ids.values])
    vectors = base.bottom(words, tokens.types, 1).values.numpy()
    knowledge = Knowledge(2, "cpu", cut=1, base=base)
    for size in (1, 3):
        attack = Optimise(relaxation=relaxation, steps=150, batch_size=size)
        (guess,) = attack.guess(
            heard(vectors, tokens.lengths.numpy()), knowledge, np.random.default_rng(0)
        )
        assert guess.values[:, 0].tolist() == tokens.ids.values.tolist()


def test_each_round_gives_a_candidate():
    base = load_tiny("tiny-bert")
    tokens = base.encode(["not good"], None, 32)
    words = tokens.ids.with_values(base.embeddings[tokens.ids.values])
    seen = heard(base.bottom(words, tokens.types, 1).values.numpy(), tokens.lengths.numpy(), 3)
    knowledge = Knowledge(2, "cpu", cut=1, base=base)
    (guess,) = Optimise(steps=5).guess(seen, knowledge, np.random.default_rng(0))
    assert guess.values.shape == (len(tokens.ids.values), 3)


def test_minilm_gives_up_every_token_behind_its_first_block(minilm):
    tokens = minilm.encode(["it 's a charming and often affecting journey .", "awful ."], None, 32)
    words = tokens.ids.with_values(minilm.embeddings[tokens.ids.values])
    vectors = minilm.bottom(words, tokens.types, 1).values.numpy()
    (guess,) = Optimise().guess(
        heard(vectors, tokens.lengths.numpy()),
        Knowledge(2, "cpu", cut=1, base=minilm),
        np.random.default_rng(0),
    )
    assert (guess.values[:, 0] == tokens.ids.values.numpy())[~tokens.special.numpy()].all()


TEXTS = [
    "bad",
    "the food was very good and the staff friendly",
    "not good",
    "we came for the food and the staff was not friendly",
    "friendly staff and very good food",
    "the staff was very bad",
]


NOISE = 20.0
"""η of noise behind the first block of the tiny model through which its words can just be read."""


RELAXATIONS = pytest.mark.parametrize("relaxation", ["embeddings", "logits"])
LEVELS = pytest.mark.parametrize("eta", [None, NOISE])


def encoded(base: Backbone) -> Tokens:
    return base.encode(TEXTS, None, 32)


def found(attack: Optimise, tokens: Tokens, vectors: np.ndarray) -> Ints:
    n = np.arange(len(tokens))
    sent = Message(
        Channel.REPRESENTATIONS,
        "train",
        0,
        "customer",
        "vendor",
        0,
        n,
        vectors,
        tokens.lengths.numpy(),
    )
    knowledge = Knowledge(2, "cpu", cut=1, base=load_tiny("tiny-bert"))
    (guess,) = attack.guess(Transcript((sent,)), knowledge, np.random.default_rng(0))
    return guess.values[:, 0]


def sent(base: Backbone, tokens: Tokens, eta: float | None) -> np.ndarray:
    vectors = SAP(eta=eta).simulate(base, tokens, 1, np.random.default_rng(3))
    assert vectors is not None
    return vectors.values.numpy()


@pytest.fixture
def steps(monkeypatch) -> list[int]:
    """Positions in each step of Adam that was taken."""
    taken: list[int] = []
    original = Choice.step

    def counted(self, squares):
        taken.append(len(self.free))
        original(self, squares)

    monkeypatch.setattr(Choice, "step", counted)
    return taken


@RELAXATIONS
@LEVELS
def test_stopping_early_finds_the_same_words_in_fewer_steps(
    tiny, steps, monkeypatch, relaxation, eta
):
    tokens = encoded(tiny)
    vectors, attack = sent(tiny, tokens, eta), Optimise(relaxation=relaxation)
    early = found(attack, tokens, vectors)
    quick = sum(steps)
    steps.clear()
    monkeypatch.setattr(eia_optimise, "PATIENCE", 10**6)
    monkeypatch.setattr(eia_optimise, "EXACT", -1.0)
    late = found(attack, tokens, vectors)
    assert sum(steps) >= attack.steps * len(vectors)
    assert quick < (0.1 if eta is None else 0.67) * sum(steps)
    assert early.tolist() == late.tolist()
    right = (early == tokens.ids.values.numpy())[~tokens.special.numpy()].mean()
    assert right > 0.9


def test_solved_examples_cost_no_step(tiny, steps):
    tokens = encoded(tiny)
    assert (
        found(Optimise(), tokens, sent(tiny, tokens, None)).tolist() == tokens.ids.values.tolist()
    )
    assert not steps


@LEVELS
def test_few_candidates_find_what_all_words_do(tiny, eta):
    tokens = encoded(tiny)
    vectors = sent(tiny, tokens, eta)
    few, every = (
        found(Optimise(candidates=n), tokens, vectors) for n in (16, len(tiny.embeddings))
    )
    assert few.tolist() == every.tolist()


@RELAXATIONS
def test_words_outside_the_candidates_are_found_among_all(tiny, steps, monkeypatch, relaxation):
    original = Discriminant.scores
    monkeypatch.setattr(Discriminant, "scores", lambda self, x: 1e-3 * -original(self, x))
    tokens = encoded(tiny)
    attack = Optimise(relaxation=relaxation, candidates=2, steps=150)
    words = found(attack, tokens, sent(tiny, tokens, None))
    assert steps
    assert words.tolist() == tokens.ids.values.tolist()


@RELAXATIONS
@LEVELS
def test_words_of_an_example_do_not_depend_on_its_batch(tiny, relaxation, eta):
    tokens = encoded(tiny)
    vectors, attack = sent(tiny, tokens, eta), Optimise(relaxation=relaxation)
    together = found(attack, tokens, vectors)
    for row in range(len(tokens)):
        one = torch.tensor([row])
        at = tokens.ids.positions(one)
        assert found(attack, tokens.take(one), vectors[at]).tolist() == together[at].tolist()


@pytest.mark.parametrize("kind", ["logits among some", "logits", "vectors"])
def test_dropping_positions_leaves_the_search_at_the_others_as_it_was(kind):
    generator = torch.Generator().manual_seed(0)
    rows, goal = torch.randn(9, 4, generator=generator), torch.randn(5, 4, generator=generator)
    likely, keep = torch.randn(5, 9, generator=generator), torch.tensor([1, 0, 1, 1, 0]).bool()
    among = likely.topk(3)[1]

    def made() -> Choice:
        if kind == "vectors":
            return Vectors(goal * 0, rows, 0.1)
        if kind == "logits":
            return Logits(likely, rows, 0.1)
        return Logits(likely.gather(1, among), rows, 0.1, among)

    whole, shrunk = made(), made()
    for _ in range(4):
        whole.step(lambda x: (x - goal).square().sum(1))
        shrunk.step(lambda x: (x - goal).square().sum(1))
    before = shrunk.vectors().detach()
    shrunk.keep(keep)
    for _ in range(4):
        whole.step(lambda x: (x - goal).square().sum(1))
        shrunk.step(lambda x: (x - goal[keep]).square().sum(1))
    torch.testing.assert_close(shrunk.vectors(), whole.vectors()[keep])
    assert shrunk.words().tolist() == whole.words()[keep].tolist()
    assert not torch.allclose(shrunk.vectors(), before[keep])


def test_discriminant_ranks_words_from_random_sequences_alone_and_knows_the_frame(tiny):
    tokens = encoded(tiny)
    vectors = tokens.ids.with_values(torch.from_numpy(sent(tiny, tokens, None)))
    scores = Discriminant(tiny, 1, np.random.default_rng(0)).scores(vectors)
    right = scores.argmax(1) == tokens.ids.values
    assert right[tokens.special].all()
    assert right.float().mean() > 0.9
    noise = Discriminant(tiny, 1, np.random.default_rng(0)).scores(
        vectors.with_values(torch.randn(vectors.values.shape))
    )
    assert (noise.argmax(1) == tokens.ids.values)[tokens.special].all()
