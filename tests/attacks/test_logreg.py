"""Labels by logistic regression."""

from __future__ import annotations

import numpy as np
import torch
from label_attacks import sent, success

from leakboard.attacks.logreg import LogReg
from leakboard.bench.attacking.adapter_gradients import (
    principal,
)
from leakboard.bench.contracts.transcript import Transcript


def test_logistic_regression_learns_from_principal_axes_of_which_most_hold_next_to_nothing():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=90)
    x = np.outer(2 * y - 1, rng.standard_normal(500)) + 0.1 * rng.standard_normal((90, 500))
    axes = principal([torch.tensor(x[:, :200]), torch.tensor(x[:, 200:])])
    assert success(LogReg(), Transcript((sent(axes),)), y).value > 0.95


def learnt(x, y, unknown):
    x, unknown = (np.asarray(part, np.float32) for part in (x, unknown))
    return LogReg().learn(x, np.asarray(y), unknown, np.random.default_rng(0))


def test_a_rare_class_weighs_as_much_as_a_frequent_one():
    rng = np.random.default_rng(0)
    y = (np.arange(400) % 20 == 0).astype(int)
    x = rng.standard_normal((400, 2)) + 1.5 * np.outer(y, [1, 0])
    unknown = rng.standard_normal((400, 2)) + np.array([1.5, 0])
    found = learnt(x, y, unknown)
    # Two normal laws 1.5 apart: half way between them Φ(0.75) = 0.77 of the rare class are found.
    assert found.mean() > 0.65


def test_rows_to_guess_are_centred_and_scaled_as_the_known_ones_were():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    x = 1e-3 * (rng.standard_normal((80, 3)) + 4 * y[:, None]) + 70
    assert (learnt(x, y, x) == y).mean() > 0.95
