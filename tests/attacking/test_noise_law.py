"""A law of noise that is estimated from what arrived."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import pytest
import torch

from leakboard.bench.attacking import Expected, NoiseLaw

ROWS = torch.randn(400, 6, generator=torch.Generator().manual_seed(0))

EXACTLY = "donot_use_mm_for_euclid_dist"


def scores(law, received, words):
    far = torch.cdist(received, words, compute_mode=EXACTLY)
    same = far < 1e-4 if law.atom else torch.zeros_like(far, dtype=torch.bool)
    return law.scores(far * ~same, same)


def test_chances_of_all_rows_add_up_to_one():
    law = NoiseLaw.between_rows(ROWS[:50], ROWS)
    for weights in (law.weights, torch.tensor([2.0, 0.5, 3.0])):
        law = replace(law, weights=weights)
        total = scores(law, ROWS, ROWS[:50]).exp().sum(0)
        torch.testing.assert_close(total, torch.ones(50), atol=0.03, rtol=0)


def test_half_of_the_words_stay_at_the_start():
    law = NoiseLaw.between_rows(ROWS[:50], ROWS)
    stays = scores(law, ROWS[:50], ROWS[:50]).diagonal().exp()
    assert 0.4 < float(stays.mean()) < 0.6


@pytest.mark.parametrize(("a", "b", "s"), [(2.0, 0.01, 0.0), (0.01, 0.5, 1.0)])
def test_known_pairs_give_the_law_that_made_them(a, b, s):
    start = NoiseLaw.between_rows(ROWS, ROWS)
    truth = replace(start, weights=torch.tensor([a, b, s]))
    chances = scores(truth, ROWS, ROWS).exp().T
    sent = torch.multinomial(chances, 60, True, generator=torch.Generator().manual_seed(2))
    far = torch.cdist(ROWS, ROWS, compute_mode=EXACTLY)[torch.arange(400)[:, None], sent]
    same = sent == torch.arange(400)[:, None]
    parts = [
        Expected(each[0].sum(), each[0].square().sum(), each[1].sum(), torch.full((400,), 30.0))
        for each in ((far[:, half] * ~same[:, half], same[:, half]) for half in (slice(30), slice(30, 60)))
    ]  # fmt: skip
    found = start.fitted(reduce(lambda one, other: one + other, parts))
    theirs, ours = (
        torch.stack([each.weights[0] * r + each.weights[1] * r**2 for r in (1.5, 2.5, 4.0)])
        - each.weights[2]
        for each in (truth, found)
    )
    torch.testing.assert_close(ours, theirs, atol=0.4, rtol=0)


def test_volume_is_that_of_all_vectors():
    # A Gaussian with standard deviation σ has b = 1 / 2σ² and Z = (2πσ²)^(d/2), up to the area of the unit sphere.
    law = replace(NoiseLaw.around_rows(6, 2.5), weights=torch.tensor([1e-3, 0.5, 0.0]))
    expected = 3 * torch.tensor(2 * torch.pi).log() - torch.tensor(torch.pi**3).log()
    assert abs(float(law.log_norm) - float(expected)) < 0.02


def test_width_of_gaussian_noise_is_found():
    far = 0.5 * torch.randn(4000, 6, generator=torch.Generator().manual_seed(3)).norm(dim=1)
    law = NoiseLaw.around_rows(6, float(far.median()))
    sums = Expected(far.sum(), far.square().sum(), torch.zeros(()), torch.full((1,), 4000.0))
    found = law.fitted(sums)
    slopes = found.weights[0] + 2 * found.weights[1] * 1.1
    assert abs(float(slopes) - 1.1 / 0.25) < 0.4
