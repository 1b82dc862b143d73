"""Distance correlation measures what it says, and its weight lowers it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from cells import fine_tuned, session_of
from torch.nn.functional import one_hot

from leakboard.defenses import dc
from leakboard.defenses.dc import DistanceCorrelation, log_dcor2
from leakboard.defenses.none import NoDefense


def reference(x, y):
    """dCor² by its definition: sums over all pairs, written out."""

    def centred(z):
        n = len(z)
        d = np.array([[np.linalg.norm(z[i] - z[j]) for j in range(n)] for i in range(n)])
        out = np.zeros((n, n))
        for i in range(n):
            for j in range(n):
                out[i, j] = d[i, j] - d[i].mean() - d[:, j].mean() + d.mean()
        return out

    a, b = centred(x), centred(y)
    return (a * b).mean() / math.sqrt((a * a).mean() * (b * b).mean())


def test_distance_correlation_is_that_of_its_definition():
    rng = np.random.default_rng(0)
    for classes in (2, 3):
        labels = rng.integers(classes, size=12)
        x = rng.normal(size=(12, 4)) + labels[:, None]
        y = one_hot(torch.from_numpy(labels), classes).double()
        found = log_dcor2(torch.from_numpy(x), y).exp().item()
        assert found == pytest.approx(reference(x, y.numpy()))


def test_distance_correlation_is_one_for_itself_and_does_not_see_shift_or_scale():
    x = torch.randn(20, 3, dtype=torch.double)
    assert log_dcor2(x, 5 - 2 * x).exp().item() == pytest.approx(1.0)


def test_gradient_is_finite_for_equal_rows_and_for_rows_without_any_spread():
    for h in (torch.ones(6, 3), torch.tensor([[1.0, 2], [1, 2], [3, 4]])):
        h = h.clone().requires_grad_()
        y = one_hot(torch.arange(len(h)) % 2, 2).float()
        log_dcor2(h, y).backward()
        assert torch.isfinite(h.grad).all()


def test_squared_scaling_is_twice_as_strong_and_no_weight_is_plain_fine_tuning(monkeypatch):
    curves = {}
    for name, defense in {
        "none": NoDefense(),
        "off": DistanceCorrelation(weight=0),
        "once": DistanceCorrelation(weight=0.4),
        "half": DistanceCorrelation(weight=0.2, scaling="dcor2"),
        "twice": DistanceCorrelation(weight=0.4, scaling="dcor2"),
    }.items():
        session, _, _ = fine_tuned(defense, limit=64, train={"learning_rate": 2e-2})
        curves[name] = session.loss
    assert curves["off"] == curves["none"]
    assert curves["once"] == pytest.approx(curves["half"], rel=1e-4)
    assert curves["once"] != pytest.approx(curves["twice"], rel=1e-4)


def test_weight_lowers_the_distance_correlation_of_what_is_sent():
    found = []
    for weight in (0.0, 3.0):
        session, inputs, _ = fine_tuned(
            DistanceCorrelation(weight=weight),
            limit=200,
            train={"epochs": 6, "learning_rate": 2e-2},
        )
        seen = session.wire.transcript()
        last = seen.moments("activations")[-1]
        block = seen.collect("activations", round=None, moment=last)
        labels = torch.from_numpy(inputs.task.splits["train"].labels[block.rows])
        y = one_hot(labels, 2).float()
        found.append(log_dcor2(torch.tensor(block.values), y).item())
    assert found[1] < found[0]


def test_batch_of_one_class_trains_on_its_task_alone(monkeypatch):
    def forbidden(h, y):
        raise AssertionError("there is nothing to correlate with")

    session, _ = session_of(DistanceCorrelation(weight=1.0), limit=32)
    session.labels[:] = 1
    monkeypatch.setattr(dc, "log_dcor2", forbidden)
    DistanceCorrelation(weight=1.0).fine_tune(session)
    assert np.isfinite(session.loss).all()
    assert session.skipped_batches == len(session.loss)
