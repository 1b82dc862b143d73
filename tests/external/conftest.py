"""What the tests of the Recorder share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder that is not there yet."""
    return tmp_path / "wire"


@pytest.fixture
def from_nowhere() -> Iterator[None]:
    """Of models that were made on the spot the Recorder warns that no public model is known."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no public model is known")
        yield
