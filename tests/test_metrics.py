"""Estimates and scores, against independent references."""

from __future__ import annotations

import numpy as np
import pytest
from cells import inputs_of, make, run
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import accuracy_score

from bench.contracts.channels import Channel
from bench.contracts.guess import Guess
from bench.contracts.threat import Goal
from bench.scoring import metrics
from bench.scoring.guesses import BadGuess, Truth, score
from bench.scoring.metrics import most_frequent_share, share, wilson
from defenses.none import NoDefense
from defenses.sap import SAP


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_equals_scipy(hits_of):
    hits, n = hits_of
    known = binomtest(hits, n).proportion_ci(method="wilson")
    assert wilson(hits, n) == pytest.approx((known.low, known.high), abs=1e-6)


def test_share_is_the_pooled_share_and_examples_without_units_do_not_count():
    got = share(np.array([1, 3, 0, 0]), np.array([2, 3, 5, 0]), 0.25)
    assert got.value == 4 / 10
    assert (got.n, got.chance) == (3, 0.25)
    assert 0 <= got.low < got.value < got.high <= 1
    with pytest.raises(ValueError, match="anything to score"):
        share(np.array([0]), np.array([0]), 0.5)


@pytest.mark.parametrize("right", [0, 1])
def test_unanimous_guesses_have_wilsons_interval_over_examples_and_not_over_tokens(right):
    got = share(np.full(20, 7 * right), np.full(20, 7), 0.1)
    assert (got.low, got.high) == wilson(20 * right, 20)
    assert got.high - got.low > 0.1


def test_interval_covers_the_true_share_about_95_times_in_100():
    rng, covered, rounds = np.random.default_rng(0), 0, 300
    for _ in range(rounds):
        totals = rng.integers(5, 15, size=150)
        own = rng.beta(3, 7, size=150)
        got = share(rng.binomial(totals, own), totals, 0.0)
        covered += got.low <= 0.3 <= got.high
    assert 0.91 <= covered / rounds <= 0.985


def test_interval_is_wider_where_tokens_of_an_example_hang_together():
    rng = np.random.default_rng(1)
    totals = np.full(200, 20)
    apart = share(rng.binomial(20, 0.5, size=200), totals, 0.0)
    together = share(20 * rng.binomial(1, 0.5, size=200), totals, 0.0)
    width = [e.high - e.low for e in (apart, together)]
    naive = np.subtract(*wilson(round(apart.value * 4000), 4000)[::-1])
    assert width[0] == pytest.approx(naive, rel=0.2)
    # Twenty tokens that are one: √20 times as wide.
    assert width[1] / width[0] == pytest.approx(np.sqrt(20), rel=0.2)


def test_interval_is_a_function_of_the_guesses():
    hits, totals = np.arange(30) % 3, np.full(30, 4)
    assert share(hits, totals, 0.1) == share(hits, totals, 0.1)


def test_chance_is_the_share_of_the_most_frequent_candidates():
    values = np.array([4, 4, 4, 9, 9, 1, 0, 0])
    assert most_frequent_share(values) == 3 / 8
    assert most_frequent_share(values, guesses=2) == 5 / 8
    assert most_frequent_share(values, guesses=99) == 1


# Scoring


@pytest.fixture(scope="module")
def truth():
    plan = make(SAP())
    inputs, _ = inputs_of(plan, plan.cells[0])
    return Truth(inputs.tokens, inputs.task.splits, inputs.recorded)


def inversion(truth, values, split="train", **fields):
    rows = truth.recorded[split]
    lengths = truth.tokens[split].lengths.numpy()
    given = {"rows": rows, "values": values, "lengths": lengths} | fields
    return Guess(Goal.INVERSION, Channel.REPRESENTATIONS, split, **given)


def test_inversion_scores_real_tokens_only_and_any_of_its_candidates(truth):
    tokens = truth.tokens["train"]
    ids, special = tokens.ids.values.numpy(), tokens.special.numpy()
    half = np.where(np.arange(len(ids)) % 2, ids, -1)
    got = score(inversion(truth, half), truth)
    assert got["success"].value == accuracy_score(ids[~special], half[~special])
    assert got["units"] == (~special).sum()
    assert got["success"].n == len(tokens)
    assert got["success"].chance == most_frequent_share(ids[~special])
    both = np.stack([half, np.where(half == -1, ids, -1)], axis=1)
    got = score(inversion(truth, both), truth)
    assert got["success"].value == 1
    assert got["success"].chance == most_frequent_share(ids[~special], 2)


def test_guesses_are_scored_by_row_whatever_their_order(truth):
    labels = truth.splits["train"].labels
    rows = truth.recorded["train"][::-1]
    values = labels[rows].copy()
    values[:6] = 1 - values[:6]
    got = score(Guess(Goal.LABEL, None, "train", rows, values), truth)["success"]
    assert got.value == 1 - 6 / len(rows)
    assert got.chance == np.bincount(labels).max() / len(labels)


def test_unknown_attribute_values_are_not_scored(truth):
    gender = truth.splits["train"].attributes["gender"].copy()
    gender[5:] = -1
    truth.splits["train"].attributes["half"] = gender
    rows = truth.recorded["train"]
    guess = Guess(Goal.ATTRIBUTE, None, "train", rows, gender, attribute="half")
    assert score(guess, truth)["units"] == 5


def rubbish(truth):
    ids = truth.tokens["train"].ids.values.numpy()
    rows = truth.recorded["train"]
    label = np.zeros(len(rows), int)
    return {
        "floats": (inversion(truth, ids.astype(float)), "integers"),
        "NaN": (inversion(truth, np.full(len(ids), np.nan)), "integers"),
        "too few tokens": (inversion(truth, ids[:-1]), r"shape \[T\]"),
        "no candidates": (inversion(truth, ids[:, None][:, :0]), r"shape \[T\]"),
        "a cube": (inversion(truth, ids[:, None, None]), r"shape \[T\]"),
        "other lengths": (inversion(truth, ids, lengths=label), "every token"),
        "no lengths": (inversion(truth, ids, lengths=None), "every token"),
        "easy rows": (Guess(Goal.LABEL, None, "train", rows[:9], label[:9]), "each of the 48"),
        "a row twice": (Guess(Goal.LABEL, None, "train", rows * 0, label), "about 1 examples"),
        "hidden rows": (Guess(Goal.LABEL, None, "train", rows + 1, label), "recorded"),
        "wrong shape": (Guess(Goal.LABEL, None, "train", rows, label[:, None]), "one guess per"),
        "no such split": (Guess(Goal.LABEL, None, "tset", rows, label), "'tset' is not one of"),
        "unseen split": (Guess(Goal.LABEL, None, "auxiliary", rows, label), "not one of"),
        "attribute": (Guess(Goal.ATTRIBUTE, None, "train", rows, label, attribute="x"), "gender"),
        "no attribute": (Guess(Goal.ATTRIBUTE, None, "train", rows, label), "gender"),
        "goal": (Guess(Goal.MEMBERSHIP, None, "train", rows, label), "cannot be scored"),
    }


def test_rubbish_is_refused_with_a_sentence(truth):
    for guess, message in rubbish(truth).values():
        with pytest.raises(BadGuess, match=message):
            score(guess, truth)


def test_success_can_be_computed_again_from_raw(tmp_path):
    scored = 0
    for record in run(tmp_path, SAP(eta=180), NoDefense()):
        truth = np.array(record.predictions["truth"])
        right = (truth == record.predictions["predicted"]).astype(int)
        chance = most_frequent_share(truth)
        assert record.utility == share(right, np.ones(len(truth), int), chance)
        for leak in record.leaks:
            if leak.status != "ok":
                continue
            raw = {name: np.array(values) for name, values in leak.raw.items()}
            if leak.goal == Goal.INVERSION:
                hits, totals = raw["hits"], raw["tokens"]
            else:
                hits = (raw["guess"] == raw["truth"]).astype(int)
                totals = np.ones_like(hits)
                assert leak.success.chance == most_frequent_share(raw["truth"])
            assert metrics.share(hits, totals, leak.success.chance) == leak.success
            assert leak.units == totals.sum()
            scored += 1
    assert scored > 10
