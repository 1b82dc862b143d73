"""Pictures show what was sent: the principal components on a record are those of the transcript."""

from __future__ import annotations

import numpy as np

from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.scoring.components import POINTS, projections


def message(moment, values, rows, part=0):
    values = np.asarray(values, np.float32)
    sent = (Channel.ACTIVATIONS, "train", 0, "vendor", "vendor", part)
    return Message(*sent, np.asarray(rows), values, None, 10 * moment, moment)


def test_points_are_the_first_two_components_whatever_the_order_of_the_rows():
    rng = np.random.default_rng(0)
    rows = rng.permutation(40)
    sign = np.where(rows % 2 == 0, 1.0, -1.0)
    values = rng.normal(size=(40, 5)) * 0.01
    values[:, 3] += 7 * sign
    (found,) = projections(Transcript([message(0, values, rows)]), np.arange(40) % 2)
    first = np.array(found.points)[:, 0]
    truth = np.array(found.truth)
    assert np.abs(first).max() == 1000
    assert len(np.unique(np.sign(first[truth == 0]))) == 1
    assert np.sign(first[truth == 0][0]) != np.sign(first[truth == 1][0])


def test_few_moments_are_shown_the_first_and_the_last_among_them_and_each_part():
    rng = np.random.default_rng(0)
    sent = [message(m, rng.normal(size=(8, 3)), range(8), p) for m in range(9) for p in (0, 1)]
    found = projections(Transcript(sent), np.zeros(8, int))
    assert sorted({one.step for one in found}) == [0, 30, 50, 80]
    assert {one.part for one in found} == {0, 1}


def test_at_most_so_many_points_are_kept():
    rng = np.random.default_rng(0)
    n = POINTS + 5
    (found,) = projections(
        Transcript([message(0, rng.normal(size=(n, 3)), range(n))]), np.zeros(n, int)
    )
    assert len(found.points) == len(found.truth) == POINTS
