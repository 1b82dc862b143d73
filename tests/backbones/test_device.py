"""Devices by name, on machines that have them and on others."""

from __future__ import annotations

import pytest
import torch

from leakboard.bench.backbones.device import device_of, random_state, set_random_state
from leakboard.bench.contracts.errors import LeakboardError


@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_a_device_is_taken_where_there_is_one_and_refused_elsewhere(monkeypatch, kind):
    place = torch.cuda if kind == "cuda" else torch.backends.mps
    monkeypatch.setattr(place, "is_available", lambda: True)
    assert device_of(kind) == kind
    monkeypatch.setattr(place, "is_available", lambda: False)
    with pytest.raises(LeakboardError, match=rf"{kind}.* is available; use cpu|CUDA device is"):
        device_of(kind)


@pytest.mark.parametrize(("there", "chosen"), [(True, "cuda"), (False, "cpu")])
def test_auto_is_a_gpu_that_was_tested_and_else_the_cpu(monkeypatch, there, chosen):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert device_of("auto") == chosen


@pytest.mark.parametrize("name", ["gpu", "tpu", "mps-1", ""])
def test_another_name_is_answered_with_those_that_there_are(name):
    with pytest.raises(LeakboardError, match="expected cpu, cuda, cuda:N, mps or auto"):
        device_of(name)


def test_the_generator_of_the_device_is_the_one_that_is_set_back(monkeypatch):
    kept = {}
    monkeypatch.setattr(torch.mps, "get_rng_state", lambda: torch.tensor([7]))
    monkeypatch.setattr(torch.mps, "set_rng_state", lambda state: kept.update(mps=state))
    set_random_state(random_state("mps"), "mps")
    assert kept["mps"].tolist() == [7]
    before = random_state("cpu")
    drawn = torch.rand(3)
    set_random_state(before, "cpu")
    assert torch.equal(torch.rand(3), drawn)
