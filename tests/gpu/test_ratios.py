"""The table of ratios to two cores: what it compares, and what it says without a GPU."""

from __future__ import annotations

import pytest
import torch
from cells import load_tiny

from leakboard.bench.speed import gpu, precision


@pytest.fixture
def asked(monkeypatch):
    """The devices for which a model was loaded, which is a tiny one."""
    devices: list[str] = []

    def load(name: str, device: str = "cpu"):
        devices.append(device)
        return load_tiny("tiny-bert", device)

    for module in (gpu, precision):
        monkeypatch.setattr(module, "load_backbone", load)
    monkeypatch.setattr(gpu, "interleaved", lambda *ways: [float(way() is None) for way in ways])
    return devices


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_every_work_is_done_on_two_cores_and_on_the_device(asked, device):
    threads = torch.get_num_threads()
    found = gpu.compared(device, examples=24, tokens=64)
    assert set(found) == {"snap of 64 tokens", *gpu.TRAINED}
    assert asked == ["cpu", device] * len(found)
    assert {len(seconds) for seconds in found.values()} == {2}
    assert torch.get_num_threads() == threads


def test_without_a_gpu_the_table_is_not_made_up(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    gpu.gpu()
    assert "no CUDA device here" in capsys.readouterr().out
