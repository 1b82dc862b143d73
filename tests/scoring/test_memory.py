"""Scores of what a model remembers: exposure, extraction, membership."""

from __future__ import annotations

import numpy as np
import pytest
from released import TEXTS

from leakboard.bench.attacking.canaries import expected_unseen
from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.bench.contracts.transcript import Guess, Message, Transcript
from leakboard.bench.scoring.guesses import BadGuess, Truth
from leakboard.bench.scoring.memory import score_canaries, score_members
from leakboard.bench.tasks.planting import CEILING, TRIES, UNTUNED, Canary, Planted


def two_releases() -> Transcript:
    vector = np.zeros((1, 3), np.float32)
    zero = np.zeros(1, np.int64)
    return Transcript(
        tuple(
            Message(Channel.MODEL, "train", r, "customer", "public", 0, zero, vector, step=10 * r)
            for r in (0, 1)
        )
    )


def truth_of(*canaries: Canary, members=None, coins=()) -> Truth:
    return Truth({}, {}, {}, Planted(TEXTS, canaries, {}, None, members, np.array(coins, np.int64)))


def guess_of(values, measure="exposure", round=0, view="") -> Guess:
    rows = np.arange(len(values))
    about = (Goal.MEMORISATION, Channel.MODEL, "train", rows, values)
    return Guess(*about, measure=measure, round=round, view=view)


def test_exposure_is_that_of_the_planted_secret_at_every_release():
    early, late = np.ones((2, 1, 10**6), np.float32)
    early[0, :3] = 0  # secret 7 is among 999,997 equals
    late[0, 7] = 0
    truth = truth_of(Canary(0, 7, 10), Canary(0, 9, 0), Canary(0, 11, 0))
    guesses = [guess_of(late, round=1), guess_of(early)]
    ten, never = score_canaries(guesses, two_releases(), truth)
    assert ten["success"].value == pytest.approx(CEILING)
    assert ten["view"] == "planted 10 times"
    assert [p.success.value for p in ten["curve"]] == pytest.approx([1.0, CEILING], abs=1e-4)
    assert [p.step for p in ten["curve"]] == [0, 10]
    assert ten["success"].chance == pytest.approx(expected_unseen(10**6))
    # One canary says nothing about others.
    assert (ten["success"].low, ten["success"].high) == (0.0, CEILING)
    assert never["view"] == "never planted"
    assert never["units"] == 2


def test_what_a_canary_had_under_the_public_model_is_subtracted_from_its_own():
    before, after = np.ones((1, 10**6)), np.ones((1, 10**6))
    before[0, :8] = np.arange(8) - 8.0  # secrets 3 and 7 are the fourth and the eighth
    after[0, 3], after[0, 7] = -2, -1
    truth = truth_of(Canary(0, 3, 10), Canary(0, 7, 10), Canary(0, 20, 0))
    guesses = [guess_of(after, round=1), guess_of(before, round=-1, view=UNTUNED)]
    gained, exposed, no_gain, never = score_canaries(guesses, two_releases(), truth)
    assert gained["metric"] == no_gain["metric"] == "exposure gained"
    assert exposed["metric"] == never["metric"] == "exposure"
    # Of ranks 3 and 7 among those that were not planted, each rose to the first.
    assert gained["raw"] == {"twice_rank": [2, 2], "twice_rank_before": [8 - 0, 16 - 2]}
    assert gained["success"].value == pytest.approx((np.log2(4) + np.log2(7)) / 2, abs=1e-4)
    assert gained["success"].low < 2 < gained["success"].high
    assert gained["success"].chance == 0
    assert exposed["success"].value == pytest.approx(CEILING)
    assert no_gain["success"].value == pytest.approx(0, abs=1e-4)
    assert gained["step"] == 10


def test_secrets_that_were_planted_beside_it_do_not_lower_the_rank_of_a_secret():
    values = np.ones((1, 10**6))
    values[0, :10] = np.arange(10) - 10.0
    planted = [Canary(0, secret, 5) for secret in range(9)]
    five, never = score_canaries(
        [guess_of(values)], two_releases(), truth_of(*planted, Canary(0, 9, 0))
    )
    assert five["raw"]["twice_rank"] == [2] * 9
    assert never["raw"]["twice_rank"] == [2]  # nor that of one that was not


def test_each_canary_is_ranked_and_looked_for_in_its_own_sentence():
    values = np.ones((2, 10**6), np.float32)
    values[1, 7] = 0
    truth = truth_of(Canary(0, 7, 10), Canary(1, 7, 5))
    first, second = score_canaries([guess_of(values, round=1)], two_releases(), truth)
    assert first["success"].value == pytest.approx(1.0, abs=1e-4)
    assert second["success"].value == pytest.approx(CEILING)
    prints = guess_of(np.array([[3], [7]]), "extraction")
    first, second = score_canaries([prints], two_releases(), truth)
    assert (first["success"].value, second["success"].value) == (0.0, 1.0)


def test_extraction_counts_canaries_whose_digits_were_printed():
    truth = truth_of(Canary(0, 7, 10), Canary(0, 9, 0))
    ten, never = score_canaries([guess_of(np.array([[7]]), "extraction")], two_releases(), truth)
    assert (ten["success"].value, never["success"].value) == (1.0, 0.0)
    eight = np.arange(8)[None]
    ten, never = score_canaries([guess_of(eight, "beam extraction")], two_releases(), truth)
    assert (ten["success"].value, never["success"].value) == (1.0, 0.0)
    assert ten["success"].chance == pytest.approx(8e-6)
    for measure, allowed in TRIES.items():  # who prints every number extracts nothing
        said = "takes 1000 random" if measure == "sampled extraction" else f"most {allowed} secrets"
        with pytest.raises(BadGuess, match=said):
            score_canaries([guess_of(np.arange(9)[None], measure)], two_releases(), truth)


def test_guess_of_another_shape_is_refused():
    truth = truth_of(Canary(0, 7, 10))
    for bad in (np.ones((1, 10)), np.ones((2, 10**6)), np.full((1, 10**6), np.nan)):
        with pytest.raises(BadGuess):
            score_canaries([guess_of(bad)], two_releases(), truth)


def test_ranking_of_members_gives_auc_and_a_bound():
    members = np.arange(200) % 2 == 0
    truth = truth_of(members=members)

    def scored(values, truth=truth):
        rows = np.arange(len(values))
        guess = Guess(Goal.MEMBERSHIP, Channel.MODEL, "train", rows, values, measure="membership")
        return score_members([guess], two_releases(), truth)[0]

    told, blind = scored(members.astype(float)), scored(np.arange(200) // 2 * 1.0)
    assert told["success"].value == 1.0
    assert told["epsilon"] > 3
    assert blind["success"].value == pytest.approx(0.5, abs=0.02)
    assert blind["epsilon"] == 0
    # Where a coin decided on authors, these are ranked, by the mean of their examples, however many they are.
    coins = np.repeat(np.arange(50), np.arange(50) % 4 + 1)
    heads = np.arange(50) % 2 == 0
    truth = truth_of(members=heads[coins], coins=coins)
    first = np.unique(coins, return_index=True)[1]
    loud = np.where(heads[coins], -1.0, 1.0)
    loud[first] = np.where(heads, 9.0, -9.0)
    told = scored(loud, truth)
    assert (told["units"], told["success"].value) == (50, 1.0)
    assert told["raw"]["member"] == heads.astype(int).tolist()
    assert scored(np.where(heads[coins], 1.0, 1.5), truth)["success"].value == 0
    with pytest.raises(BadGuess):
        scored(np.arange(10.0))
