"""retrieval: which of some candidates was sent."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import leak_of, load_tiny, run, session_of
from torch.nn.functional import embedding

from leakboard.attacks import retrieval
from leakboard.attacks.retrieval import Retrieval, distances, lead
from leakboard.bench.backbones.ragged import Ragged, Tokens
from leakboard.bench.contracts.threat import Channel, Goal, Knows
from leakboard.bench.contracts.transcript import Guess, Message, Transcript
from leakboard.bench.defending.pooled_noise import rescale_rows
from leakboard.bench.methods.attack import Silent
from leakboard.bench.methods.knowledge import Auxiliary, Knowledge
from leakboard.bench.scoring import NEEDED, advantage_low
from leakboard.bench.scoring.guesses import BadGuess, Truth, score
from leakboard.bench.scoring.rescoring import rescore
from leakboard.bench.tasks.task import Split
from leakboard.defenses.blackout import Blackout
from leakboard.defenses.cape import CAPE
from leakboard.defenses.custext_plus import CusTextPlus
from leakboard.defenses.dpnr import DPNR
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP

BASE = "tiny-bert"


def encoded(*texts):
    return load_tiny(BASE).encode(texts, None, 32)


WORDS = ("good", "bad", "film", "service", "very", "slow", "the", "food")
TEXTS = [" ".join(WORDS[(i >> 3 * place) % 8] for place in range(3)) for i in range(0, 512, 9)]


def knowledge_of(mechanism, texts=TEXTS):
    base = load_tiny(BASE)
    candidates = {"train": Auxiliary(encoded(*texts), np.zeros(0, np.int64))}
    return Knowledge(2, base.device, base=base, mechanism=mechanism, texts=candidates)


def guessed(mechanism, *messages, **params):
    knowledge = knowledge_of(mechanism)
    (guess,) = Retrieval(**params).guess(Transcript(messages), knowledge, np.random.default_rng(0))
    return guess.values.tolist()


def message(channel, values, rows, lengths=None, round=0):
    return Message(channel, "train", round, "customer", "vendor", 0, rows, values, lengths)


def test_laplace_noise_is_weighed_by_l1_and_repeated_messages_add_up():
    base, rng = load_tiny(BASE), np.random.default_rng(0)
    clean = rescale_rows(base.pooled(encoded(*TEXTS)))
    rows, wanted = np.arange(20), rng.permutation(len(TEXTS))[:20]
    dpnr = DPNR(epsilon=1.0)
    sent = [dpnr.noisy(clean[wanted], rng).numpy() for _ in range(600)]
    one, all_sent = (
        guessed(dpnr, *[message(Channel.ACTIVATIONS, v, rows, round=i) for i, v in enumerate(part)])
        for part in (sent[:1], sent)
    )
    right = [np.mean(np.array(named) == wanted) for named in (one, all_sent)]
    assert right[1] > right[0] + 0.3


def test_vectors_of_released_code_are_rescaled_as_their_noise_is_one_number():
    clean = rescale_rows(load_tiny(BASE).pooled(encoded(*TEXTS)))
    wanted = np.arange(30)
    sent = (clean[wanted] + 40 * torch.randn(30, 1)).numpy()
    named = guessed(
        DPNR(epsilon=0.01, as_released=True), message(Channel.ACTIVATIONS, sent, wanted)
    )
    assert np.mean(np.array(named) == wanted) > 0.9


def test_only_candidates_of_the_received_length_count():
    base = load_tiny(BASE)
    tokens = encoded("good film", "bad", "very slow service the food")
    vectors = embedding(tokens.ids.values, base.embeddings)
    sent = message(
        Channel.REPRESENTATIONS, 0 * vectors.numpy(), np.arange(3), tokens.lengths.numpy()
    )
    knowledge = knowledge_of(SAP(), ("bad", "very slow service the food", "good film"))
    (guess,) = Retrieval().guess(Transcript((sent,)), knowledge, np.random.default_rng(0))
    assert guess.values.tolist() == [2, 0, 1]


@pytest.mark.parametrize("entries", [1, 1 << 24])
def test_distances_are_those_of_each_pair_of_texts_and_zero_of_equal_ones(entries, monkeypatch):
    monkeypatch.setattr(retrieval, "ENTRIES", entries)
    draw = torch.Generator().manual_seed(0)
    near = 30 + torch.randn(40, 3, 384, generator=draw)
    far = torch.cat([near[:9], near[9:14] + 0.5 * torch.randn(5, 3, 384, generator=draw)])
    found = distances(
        *(Ragged(each.flatten(0, 1), torch.full((len(each),), 3)) for each in (far, near))
    )
    exact = (far.double()[:, None] - near.double()).norm(dim=3).sum(2)
    assert torch.allclose(found.double(), exact, rtol=1e-4, atol=0)
    assert found.diagonal()[:9].tolist() == 9 * [0]


def test_stated_probabilities_of_words_are_multiplied():
    base, mechanism = load_tiny(BASE), CusTextPlus(epsilon=2.0)
    tokens = encoded(*TEXTS)
    ids = mechanism.replaced(tokens, base, np.random.default_rng(0))
    sent = embedding(ids.values, base.embeddings).numpy()
    named = guessed(
        mechanism,
        message(Channel.REPRESENTATIONS, sent, np.arange(len(TEXTS)), tokens.lengths.numpy()),
    )
    lengths, received = tokens.lengths, ids
    words = torch.arange(len(base.embeddings))
    for row in range(5):
        own = received.take(torch.tensor([row])).values
        likely = []
        for other in (lengths == lengths[row]).nonzero()[:, 0]:
            true = tokens.take(other[None])
            free = ~true.special
            chances = mechanism.log_chances(words[true.ids.values[free]], base)(own[free])
            likely.append((float(chances.diagonal().clamp(min=-1e4).sum()), int(other)))
        best = max(value for value, _ in likely)
        assert named[row] in [other for value, other in likely if value == pytest.approx(best)]


def test_a_split_of_a_cell_is_read_without_protection_and_not_in_noise(tmp_path):
    fields = {"limit": 60, "attacks": (Retrieval(candidates=200),)}
    records = run(tmp_path, SAP(eta=None), DPNR(epsilon=None), Blackout(), NoDefense(), **fields)
    for record in records:
        leaks = [leak for leak in record.leaks if leak.success]
        if record.cell.defense.name == "none":
            (leak,) = record.leaks
            assert "token ids" in leak.reason
        elif record.cell.defense.name == "blackout":
            assert all(leak.success.low <= leak.success.chance for leak in leaks)
        else:
            assert len(leaks) == 2
            assert all(leak.success.value > 0.95 for leak in leaks)
            assert all(advantage_low(leak) >= NEEDED for leak in leaks)
            assert rescore(record).mismatches == []
    pooled = leak_of(records[1], "retrieval", goal="reidentification")
    assert pooled.success.chance == pytest.approx(1 / 200)


def test_the_pool_holds_each_recorded_text_once_and_public_ones_in_an_order_that_tells_nothing():
    _, inputs = session_of(SAP(), limit=60)
    pool = inputs.candidate_texts(200, 0)["train"]
    named = pool.tokens.ids.sequences()
    recorded = inputs.tokens["train"].take(torch.from_numpy(inputs.recorded["train"]))
    own = {*recorded.ids.sequences()}
    assert len(named) == len({*named}) == 200
    assert own <= {*named}
    assert len(pool.labels) == 0
    places = [place for place, ids in enumerate(named) if ids in own]
    assert 70 < np.mean(places) < 130
    assert inputs.candidate_texts(200, 0)["train"] is pool
    assert len(inputs.candidate_texts(2, 0)["train"].tokens) == len(own)


def test_own_layers_are_asked_and_not_simulated():
    values = np.zeros((2, 256), np.float32)
    with pytest.raises(Silent, match="access: query"):
        guessed(CAPE(), message(Channel.ACTIVATIONS, values, np.arange(2)))
    assert Knows.QUERIES in Retrieval(access="query").needs
    assert Knows.MECHANISM not in Retrieval(access="query").needs
    assert Knows.QUERIES not in Retrieval().needs


def test_texts_that_are_not_among_the_candidates_are_told_from_those_that_are(tmp_path):
    attack = Retrieval(candidates=200, absent=True)
    records = run(
        tmp_path, SAP(eta=None), DPNR(epsilon=None), Blackout(), limit=60, attacks=(attack,)
    )
    for record in records:
        for leak in record.leaks:
            assert leak.metric == "AUC of presence"
            assert leak.success.chance == 0.5
            if record.cell.defense.name == "blackout":
                assert leak.success.low <= 0.5
            else:
                assert leak.success.value > 0.95
                assert advantage_low(leak) >= NEEDED
        assert rescore(record).mismatches == []


def test_presence_is_how_far_the_best_candidate_is_ahead():
    near, noisy, lonely, exact = lead(
        torch.tensor([[-9.0, -10, -12], [-99, -110, -120]])
    ).tolist() + [float(lead(torch.tensor([[value]]))) for value in (-4.0, 0.0)]
    assert near == noisy == pytest.approx(1 / 9)
    assert lonely == 1 / 4
    assert exact > 1e6


def test_half_of_the_recorded_texts_are_left_out_and_no_more_candidates_are_drawn():
    _, inputs = session_of(SAP(), limit=60)
    pool = inputs.candidate_texts(200, 0, absent=True)["train"].tokens.ids.sequences()
    recorded = {
        *inputs.tokens["train"].take(torch.from_numpy(inputs.recorded["train"])).ids.sequences()
    }
    assert len({*pool}) == len(pool) == 200
    assert len(recorded.intersection(pool)) == len(recorded) - len(recorded) // 2
    assert "absent" not in Retrieval().params


def scored(values, channel=Channel.ACTIVATIONS, pool=((8,), (5, 6), (7,), (9,))):
    tokens = Tokens(Ragged.of([[5, 6], [7], [8]]), torch.zeros(4, dtype=int), torch.zeros(4) > 0)
    ids = Ragged.of(pool)
    pool = Tokens(ids, torch.zeros_like(ids.values), ids.values < 0)
    split = Split(("",) * 3, np.zeros(3, np.int64), None, {})
    truth = Truth(
        {"train": tokens}, {"train": split}, {"train": np.arange(3)}, texts={"train": pool}
    )
    return score(Guess(Goal.REIDENTIFICATION, channel, "train", [0, 1, 2], values), truth)


def test_chance_is_one_of_the_candidates_or_of_those_of_the_visible_length():
    found = scored([1, 2, 3])
    assert found["raw"] == {"hit": [1, 1, 0], "candidates": [4, 4, 4]}
    assert found["success"].chance == pytest.approx(1 / 4)
    found = scored([1, 2, 3], Channel.REPRESENTATIONS)
    assert found["raw"]["candidates"] == [1, 3, 3]
    assert found["success"].chance == pytest.approx((1 + 2 / 3) / 3)
    with pytest.raises(BadGuess, match="one of 4 candidates"):
        scored([1, 2, 4])


@pytest.mark.parametrize(
    ("pool", "times"), [(((8,), (5, 6), (7,), (8,)), 2), (((8,), (5, 6), (9,)), 0)]
)
def test_candidates_that_hold_a_recorded_text_twice_or_not_at_all_are_refused(pool, times):
    with pytest.raises(BadGuess, match=f"not once among the candidates.* is there {times} times"):
        scored([1, 2, 0], pool=pool)
