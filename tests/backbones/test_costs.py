"""What a bottom costs the customer."""

from __future__ import annotations

import pytest
import torch
from cells import load_tiny

from leakboard.bench.backbones import costs
from leakboard.bench.backbones.costs import bottom_cost


def test_cost_of_the_bottom_is_that_of_its_blocks(tmp_path):
    base = load_tiny("tiny-bert")
    lengths = torch.tensor([5, 9])
    shallow, deep = (bottom_cost(base, cut, lengths, 10) for cut in (0, 1))
    d, n, model = base.width, 7, base.model
    assert (shallow.parameters, shallow.flops) == (base.embeddings.numel(), 0)
    parts = (model.embeddings, model.encoder.layer[0])
    assert deep.parameters == sum(p.numel() for part in parts for p in part.parameters())
    # Four projections and two of twice the width, then scores and sums over n positions.
    assert deep.flops == 2 * n * d * d * (4 + 2 + 2) + 4 * n * n * d
    assert deep.tokens == n
    assert deep.megabytes == pytest.approx(4e-6 * (deep.parameters + 10 * n * d))
    assert not any(p.requires_grad for p in model.parameters()), "the public model must stay frozen"


def test_cells_alike_count_once(monkeypatch):
    base, lengths = load_tiny("tiny-bert"), torch.tensor([3, 4])
    first = bottom_cost(base, 1, lengths, 3)
    monkeypatch.setattr(costs, "FlopCounterMode", lambda **_: pytest.fail("counted again"))
    assert bottom_cost(base, 1, torch.tensor([4, 4, 3]), 3) == first
