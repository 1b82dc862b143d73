"""Unmixing: what splitting a gradient is worth, and for whom."""

from __future__ import annotations

import numpy as np
import pytest
from label_attacks import looks_of, split, success
from numpy.testing import assert_allclose

from leakboard.attacks.spectral import Spectral
from leakboard.attacks.unmix import Unmix, concentrated, oriented
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.scoring.moments import scored


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
