"""Attacks that train on public text sent through the public mechanism."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import inputs_of, leak_of, load_tiny, make, run, session_of
from scipy.stats import kstest

from attacks.eia_learned import Learned, Vectorwise, codebook, framed
from attacks.eia_map import ContextualDenoiser
from attacks.eia_nn import NearestNeighbour
from bench.attacking import inverting
from bench.contracts.channels import Channel
from bench.contracts.errors import LeakboardError
from bench.contracts.threat import Knows
from bench.contracts.transcript import Message, Transcript
from bench.methods import registry
from bench.methods.knowledge import Auxiliary, Knowledge
from bench.running.grants import knowledge_for
from bench.suites.suite import load_suite
from bench.tasks.reviews import reviews
from defenses.blackout import Blackout
from defenses.frozen import Frozen
from defenses.none import NoDefense
from defenses.sap import SAP
from defenses.sap_cti import SAPCTI

SENT = Channel.REPRESENTATIONS
NOISY = 180.0
"""An η at which the tiny model loses part of its tokens and keeps part."""
MAP = ContextualDenoiser(sentences=48)
WEIGHTS, QUERY = Learned(sentences=48), Learned(access="query", sentences=48)


def sent_and_simulated(defense, cut=0, limit=64):
    session, inputs = session_of(defense, cut=cut, limit=limit)
    defense.fine_tune(session)
    tokens = inputs.tokens["train"]
    sent = session.wire.transcript().collect(SENT).values
    simulated = defense.simulate(session.backbone, tokens, cut, np.random.default_rng(1))
    assert simulated.lengths.tolist() == tokens.lengths.tolist()
    return session.backbone, tokens, sent, simulated.values.numpy()


# The mechanism as the attacker's tool


@pytest.mark.parametrize("cut", [0, 1])
def test_simulation_without_noise_is_what_the_wire_carries(cut):
    _, _, sent, simulated = sent_and_simulated(SAP(eta=None), cut)
    np.testing.assert_allclose(simulated, sent, atol=1e-5)


def test_simulation_changes_as_many_tokens_as_the_wire_with_noise_of_its_own():
    base, tokens, sent, simulated = sent_and_simulated(SAP(eta=NOISY), limit=400)
    words = [base.neighbours.nearest(v) for v in (sent, simulated)]
    for found, vectors in zip(words, (sent, simulated), strict=True):
        assert (vectors == base.embeddings.numpy()[found]).all()
    truth, special = tokens.ids.values.numpy(), tokens.special.numpy()
    kept = [(w == truth)[~special].mean() for w in words]
    assert kept[0] == pytest.approx(kept[1], abs=0.03)
    assert (words[1] == truth)[special].all()
    assert (words[0] != words[1])[~special].mean() > 0.2


def test_simulated_noise_at_depth_follows_its_law():
    base, tokens, _, simulated = sent_and_simulated(SAP(eta=40.0), cut=1)
    words = tokens.ids.with_values(base.embeddings[tokens.ids.values])
    noise = simulated - base.bottom(words, tokens.types, 1).values.numpy()
    radius = np.linalg.norm(noise, axis=1)
    assert kstest(radius, "gamma", args=(base.width, 0, 1 / 40.0)).pvalue > 1e-3


def test_which_tokens_contribute_is_no_part_of_the_simulation():
    defense = SAPCTI(eta=20, share=0.2)
    base, tokens, sent, simulated = sent_and_simulated(defense)
    session, _ = session_of(defense, limit=64)
    clear = defense.in_clear(session)[tokens.ids.values] & ~tokens.special
    truth = tokens.ids.values
    assert (base.neighbours.nearest(sent[clear]) == truth[clear].numpy()).all()
    assert (base.neighbours.nearest(simulated[clear]) == truth[clear].numpy()).mean() < 0.1


@pytest.mark.parametrize("defense", [NoDefense(), Frozen(), Blackout()])
def test_a_defense_without_a_mechanism_simulates_nothing(defense):
    base = load_tiny("tiny-bert")
    tokens = base.encode(["not good"], None, 16)
    assert defense.simulate(base, tokens, 0, np.random.default_rng(0)) is None


def test_the_attacker_by_queries_is_given_no_weights_and_no_mechanism():
    plan = make(SAP(eta=None), attacks=[QUERY, WEIGHTS, MAP])
    inputs, backbone = inputs_of(plan, plan.cells[0])
    known = [knowledge_for(p, plan.cells[0], inputs, backbone) for p in plan.cells[0].pairings]
    assert known[0].base is None
    assert known[0].mechanism is None
    assert known[0].query is not None
    for knowledge in known[1:]:
        assert knowledge.base is backbone
        assert knowledge.mechanism is not None
        assert knowledge.query is None


# Certificates and controls


@pytest.mark.parametrize("attack", [MAP, WEIGHTS, QUERY], ids=str)
def test_all_tokens_are_found_without_noise_and_the_attack_is_certified(tmp_path, attack):
    (record,) = run(tmp_path, SAP(eta=None), attacks=[attack, NearestNeighbour()])
    for view in ("train", "dev"):
        leak = leak_of(record, attack.name, view)
        assert leak.success.value >= 0.99
        assert leak.certificate
        assert leak.success.value >= leak_of(record, "eia-nn", view).success.value - 0.01


@pytest.mark.parametrize("attack", [MAP, WEIGHTS, QUERY], ids=str)
def test_nothing_is_found_in_blackout(tmp_path, attack):
    (record,) = run(tmp_path, Blackout(), attacks=[attack], limit=200)
    assert record.leaks
    for leak in record.leaks:
        assert leak.success.low <= leak.success.chance


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


def test_plain_readers_find_all_tokens_of_minilm(minilm):
    tokens = minilm.encode(["it 's a charming and often affecting journey .", "awful ."], None, 32)
    rng = np.random.default_rng(0)

    def query(tokens, rng):
        return inverting.received(None, minilm, tokens, 0, rng)

    words = framed(tokens, len(minilm.embeddings), rng)
    codes = codebook(words, query, len(minilm.embeddings), rng)
    for plain in (minilm.embeddings, codes):
        found = Vectorwise(plain).read([query(tokens, rng)])
        assert found.tolist() == tokens.ids.values.tolist()


# What context gives away


def repeated(base, n, rng, words=60):
    """Texts of one word said six times: a token is known from its neighbours."""
    ids = torch.from_numpy(rng.choice(np.arange(10, 10 + words), n)).repeat_interleave(6)
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


def test_denoiser_beats_nearest_neighbour_and_vectorwise_reading_where_context_decides():
    seen, knowledge, private = repeated_words(NOISY)
    found = {}
    denoiser = ContextualDenoiser(epochs=8, learning_rate=5e-3)
    for attack in (NearestNeighbour(), Learned(), denoiser):
        (guess,) = attack.guess(seen, knowledge, np.random.default_rng(0))
        found[attack.name] = right(guess, private)
    assert found["eia-map"] > found["eia-nn"] + 0.1
    assert found["eia-map"] > found["eia-learned"] + 0.05


def test_several_rounds_say_more_than_one_and_give_one_committed_guess():
    found = []
    for rounds in (1, 3):
        seen, knowledge, private = repeated_words(NOISY, rounds)
        (guess,) = MAP.guess(seen, knowledge, np.random.default_rng(0))
        assert guess.values.shape == (len(private.ids.values),)
        found.append(right(guess, private))
    assert found[1] > found[0] + 0.05


@pytest.mark.parametrize("attack", [MAP, WEIGHTS, QUERY], ids=str)
def test_same_seed_same_guesses_and_the_public_model_stays_as_it_is(attack):
    seen, knowledge, _ = repeated_words(NOISY)
    base = knowledge.base
    if attack is QUERY:
        mechanism = knowledge.mechanism
        knowledge = Knowledge(
            2, "cpu", auxiliary=knowledge.auxiliary, vocabulary=knowledge.vocabulary,
            query=lambda tokens, rng: inverting.received(mechanism, base, tokens, 0, rng),
        )  # fmt: skip
    before = {k: v.clone() for k, v in base.model.state_dict().items()}
    first, second = (attack.guess(seen, knowledge, np.random.default_rng(4))[0] for _ in range(2))
    assert first.values.tolist() == second.values.tolist()
    assert all(torch.equal(before[k], v) for k, v in base.model.state_dict().items())
    assert not any(p.requires_grad for p in base.model.parameters())


# Public text of another kind


def other_text(tmp_path, texts=()):
    """A folder with a `sst2` whose public text is `texts`, before some sentences of its own."""
    folder = tmp_path / "sst2"
    folder.mkdir(parents=True)
    for split, n in (("train", 20), ("dev", 20), ("auxiliary", 60)):
        lines = [f"{split} {i} the film is not good\t{i % 2}" for i in range(n)]
        lines += [f"{text.upper()}\t0" for text in texts] if split == "auxiliary" else []
        (folder / f"{split}.tsv").write_text("\n".join(["text\tlabel", *lines]) + "\n")
    return tmp_path


def test_public_text_of_another_task_replaces_the_own_one(tmp_path, monkeypatch):
    monkeypatch.setenv("LEAKBOARD_DATA", str(other_text(tmp_path / "data")))
    own, other = (ContextualDenoiser(auxiliary=name, sentences=40) for name in ("own", "sst2"))
    plan = make(SAP(eta=None), attacks=[own, other])
    inputs, backbone = inputs_of(plan, plan.cells[0])
    near, far = (
        knowledge_for(p, plan.cells[0], inputs, backbone).auxiliary for p in plan.cells[0].pairings
    )
    foreign = plan.public["sst2"].limited(48, 0).split("auxiliary")
    assert len(far.tokens) == len(foreign) == 48
    assert near.tokens.ids.values.tolist() != far.tokens.ids.values.tolist()
    sst2 = backbone.encode(plan.public["sst2"].split("auxiliary").texts, None, 128)
    assert set(far.tokens.ids.values.tolist()) <= set(sst2.ids.values.tolist())
    # Its labels would be taken for labels of this task.
    assert len(far.labels) == 0
    assert far.attributes == {}
    (record,) = run(tmp_path / "results", SAP(eta=None), attacks=[own, other])
    told = {leak.attack.params["auxiliary"]: leak.success.value for leak in record.leaks}
    assert told.keys() == {"own", "sst2"}
    assert min(told.values()) > 0.99


def test_a_text_of_the_customers_is_not_public_because_another_task_has_it(tmp_path, monkeypatch):
    private = reviews().split("train").texts[:9]
    monkeypatch.setenv("LEAKBOARD_DATA", str(other_text(tmp_path, private)))
    plan = make(SAP(), attacks=[Learned(auxiliary="sst2")], limit=100)
    inputs, _ = inputs_of(plan, plan.cells[0])
    assert len(plan.public["sst2"].split("auxiliary")) == 69
    assert len(inputs.public["sst2"].tokens) == 60


@pytest.mark.parametrize("attack", ["eia-map", "eia-learned"])
def test_an_unknown_task_as_public_text_is_told_with_its_line_and_the_nearest_name(
    tmp_path, attack
):
    file = tmp_path / "s.yaml"
    text = f"name: s\ntask: reviews\ndefenses: none\nattacks: [{attack}: {{auxiliary: [own, sst]}}]"
    file.write_text(text)
    with pytest.raises(LeakboardError, match=r"s\.yaml:4: .*unknown task 'sst'\. .*'sst2'"):
        load_suite(str(file))


# Parts


def test_a_reader_that_is_no_better_than_the_first_is_not_taken():
    base = load_tiny("tiny-bert")
    tokens = base.encode(["the food was good", "not good"], None, 16)

    def perfect(rounds):
        return tokens.ids.values

    def same(rounds):
        return tokens.ids.values.clone()

    def wrong(rounds):
        return torch.zeros_like(tokens.ids.values)

    def query(tokens, rng):
        return inverting.received(None, base, tokens, 0, rng)

    rng = np.random.default_rng(0)
    assert inverting.best([perfect, same], query, tokens, 1, rng) is perfect
    assert inverting.best([wrong, perfect], query, tokens, 1, rng) is perfect


def test_frames_hold_the_whole_vocabulary_and_keep_special_tokens():
    base = load_tiny("tiny-bert")
    public = base.encode(["the food was good", "not good"], None, 16)
    frames = framed(public, 100, np.random.default_rng(0))
    assert set(frames.ids.values[~frames.special].tolist()) == set(range(100))
    firsts = frames.ids.values[frames.ids.starts]
    assert (firsts == public.ids.values[0]).all()
    assert int((~frames.special).sum()) < 100 + 4


def test_an_untrained_network_reads_the_nearest_code_vector():
    base = load_tiny("tiny-bert")
    tokens = base.encode(["the food was good", "not good at all"], None, 16)
    vectors = base.embeddings[tokens.ids.values] + 0.01
    expected = base.neighbours.nearest(vectors).tolist()
    inverter = Vectorwise(base.embeddings)
    assert inverter.read([tokens.ids.with_values(vectors)]).tolist() == expected


def test_one_auxiliary_text_is_too_few_to_train_and_to_choose():
    tokens = load_tiny("tiny-bert").encode(["not good"], None, 16)
    with pytest.raises(LeakboardError, match="at least 2 auxiliary texts, there are 1"):
        inverting.divided(tokens, 10, np.random.default_rng(0))


# Cost


def test_all_leaves_out_costly_attacks_and_a_suite_may_name_them(tmp_path):
    assert {n for n, a in registry.attacks().items() if a.costly} >= {"eia-map", "eia-learned"}
    file = tmp_path / "s.yaml"
    names = {}
    for attacks in ("all", "[eia-nn, eia-map: {sentences: 100}]"):
        file.write_text(f"name: s\ntask: reviews\ndefenses: none\nattacks: {attacks}\n")
        names[attacks] = [a.name for a in load_suite(str(file)).attacks]
    assert not {"eia-map", "eia-learned"} & set(names["all"])
    assert {"eia-nn", "prior"} <= set(names["all"])
    assert names["[eia-nn, eia-map: {sentences: 100}]"] == ["eia-nn", "eia-map"]
    assert Knows.MECHANISM in ContextualDenoiser().needs
