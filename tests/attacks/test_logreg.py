"""Labels by logistic regression."""

from __future__ import annotations

import numpy as np
import torch
from label_attacks import sent, success

from attacks.logreg import LogReg
from bench.attacking.adapter_gradients import (
    principal,
)
from bench.contracts.transcript import Transcript


def test_logistic_regression_learns_from_principal_axes_of_which_most_hold_next_to_nothing():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=90)
    x = np.outer(2 * y - 1, rng.standard_normal(500)) + 0.1 * rng.standard_normal((90, 500))
    axes = principal([torch.tensor(x[:, :200]), torch.tensor(x[:, 200:])])
    assert success(LogReg(), Transcript((sent(axes),)), y).value > 0.95
