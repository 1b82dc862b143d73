"""pooled-inversion: what one vector of a text tells of its tokens."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from cells import fine_tuned, leak_of, load_tiny, run

from leakboard.attacks.pooled_inversion import Counts, PooledInversion, Reader, hits, pairs
from leakboard.bench.backbones.ragged import Ragged, Tokens
from leakboard.bench.contracts.threat import Channel, Goal, Knows
from leakboard.bench.contracts.transcript import Guess
from leakboard.bench.methods.knowledge import Auxiliary, Knowledge
from leakboard.bench.scoring.guesses import BadGuess, Truth, score
from leakboard.bench.scoring.rescoring import rescore
from leakboard.bench.tasks.task import Split
from leakboard.defenses.blackout import Blackout
from leakboard.defenses.dpnr import DPNR
from leakboard.defenses.none import NoDefense

SENT = Channel.ACTIVATIONS


def tokens_of(*ids, special=()):
    ragged = Ragged.of(ids)
    marks = torch.tensor([i in special for row in ids for i in row])
    return Tokens(ragged, torch.zeros_like(ragged.values), marks)


def truth_of(tokens):
    n = len(tokens)
    split = Split(("",) * n, np.zeros(n, np.int64), None, {})
    return Truth({"train": tokens}, {"train": split}, {"train": np.arange(n)})


def bag(values):
    rows = np.arange(len(values))
    return Guess(Goal.INVERSION, SENT, "train", rows, np.array(values), measure="bag")


def test_a_bag_is_scored_by_f1_at_the_known_number_of_different_tokens():
    tokens = tokens_of([1, 5, 5, 7, 2], [1, 7, 2], [1, 8, 9, 7, 2], special=(1, 2))
    found = score(bag([[7, 3, 5], [3, 7, 5], [8, 4, 9]]), truth_of(tokens))
    assert found["raw"] == {"hits": [1, 0, 2], "tokens": [2, 1, 3]}
    assert found["metric"] == "token F1"
    assert found["success"].value == pytest.approx(3 / 6)
    # Most texts hold 7; of the others each is held by one, and the largest id is named first.
    assert found["success"].chance == pytest.approx((1 + 1 + 3) / 6)


@pytest.mark.parametrize(
    ("values", "told"), [([[7, 7], [1, 2]], "each token once"), ([7, 8], "shape")]
)
def test_a_bag_that_names_a_token_twice_or_is_no_ranking_is_refused(values, told):
    with pytest.raises(BadGuess, match=told):
        score(bag(values), truth_of(tokens_of([7, 3], [8, 4])))


def test_a_missing_guess_is_wrong_and_no_repetition():
    found = score(bag([[7, -1, -1], [-1, 4, -1]]), truth_of(tokens_of([7, 3], [8, 4])))
    assert found["raw"]["hits"] == [1, 1]


def test_discriminants_read_tokens_whose_directions_add_up_and_know_of_noise_in_one_direction():
    rng = np.random.default_rng(0)
    directions = torch.from_numpy(rng.standard_normal((40, 16)).astype(np.float32))
    rows = [sorted(rng.choice(40, 3, replace=False).tolist()) for _ in range(3000)]
    tokens = tokens_of(*rows)
    vectors = directions[tokens.ids.values].reshape(-1, 3, 16).sum(1)
    train, rest = torch.arange(2500), torch.arange(2500, 3000)
    counts = Counts.of(tokens.take(train), 50)
    known, secret = vectors[train], vectors[rest]
    plain = torch.cov(known.T)
    clean = Reader.of(known, counts, plain, 0.1)
    assert hits(clean.read(secret), tokens.take(rest)) > 0.5 * 1500
    # A number that is added to a whole vector is no obstacle to who knows that it is.
    shifted = secret + 30 * torch.randn(500, 1, generator=torch.Generator().manual_seed(0))
    aware = Reader.of(known, counts, plain + 900 * torch.ones(16, 16), 0.1)
    unaware = hits(clean.read(shifted), tokens.take(rest))
    assert hits(aware.read(shifted), tokens.take(rest)) > 2 * unaware
    frequent = Reader.of(known, counts, plain, math.inf).read(secret)
    assert (frequent == frequent[0]).all()


def test_pairs_hold_each_token_of_a_text_once_and_no_special_one():
    example, token = pairs(tokens_of([1, 5, 5, 7], [1, 5], special=(1,)))
    assert list(zip(example.tolist(), token.tolist(), strict=True)) == [(0, 5), (0, 7), (1, 5)]


def knowledge_of(base, mechanism=None):
    texts = [f"word{i % 7} good film number {i}" for i in range(60)]
    public = Auxiliary(base.encode(texts, None, 32), np.zeros(60, np.int64))
    return Knowledge(
        2, "cpu", base=base, mechanism=mechanism, auxiliary=public, vocabulary=len(base.embeddings)
    )


def test_public_vectors_are_computed_once_for_every_epsilon(monkeypatch):
    base = load_tiny("tiny-bert")
    session, _, _ = fine_tuned(DPNR(epsilon=5.0))
    seen, asked = session.wire.transcript(), []
    original = DPNR.public_vectors

    def counted(self, *args):
        asked.append(len(args[1]))
        return original(self, *args)

    monkeypatch.setattr(DPNR, "public_vectors", counted)
    knowledge = knowledge_of(base, DPNR(epsilon=5.0))
    PooledInversion().guess(seen, knowledge, np.random.default_rng(0))
    other = Knowledge(**{**vars(knowledge), "mechanism": DPNR(epsilon=1.0)})
    PooledInversion().guess(seen, other, np.random.default_rng(0))
    assert len(asked) == 2
    assert sum(asked) == 60
    dropped = Knowledge(**{**vars(knowledge), "mechanism": DPNR(epsilon=1.0, dropout=0.5)})
    PooledInversion().guess(seen, dropped, np.random.default_rng(0))
    assert len(asked) == 4


def test_it_is_granted_what_its_access_needs():
    assert PooledInversion(access="query").needs == {Knows.QUERIES, Knows.AUXILIARY_TEXT}
    assert PooledInversion(access="encoder").needs == {Knows.BASE_WEIGHTS, Knows.AUXILIARY_TEXT}
    assert Knows.MECHANISM in PooledInversion().needs


def test_it_is_not_tried_where_the_ids_themselves_are_sent_and_finds_nothing_in_noise(tmp_path):
    records = run(tmp_path, NoDefense(), Blackout(), attacks=[PooledInversion()])
    (skipped,) = records[0].leaks
    assert (skipped.status, skipped.reason) == ("skipped", "none sends the token ids themselves")
    noise = leak_of(records[1], "pooled-inversion")
    assert noise.success.low <= noise.success.chance


def test_it_works_without_noise_by_every_access_and_is_scored_again_from_what_is_kept(tmp_path):
    ways = ("mechanism", "encoder", "query")
    attacks = [PooledInversion(access=way, sentences=300) for way in ways]
    (record,) = run(tmp_path, DPNR(epsilon=None), attacks=attacks, limit=64, model="minilm")
    leaks = [leak for leak in record.leaks if leak.view == "train"]
    assert {leak.attack.params["access"] for leak in leaks} == set(ways)
    for leak in leaks:
        assert leak.success.low > leak.success.chance + 0.05, leak.attack
    assert rescore(record).mismatches == []
