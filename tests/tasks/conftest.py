"""A small dataset in a folder."""

from __future__ import annotations

import pytest
from folders import rows_of, write


@pytest.fixture(autouse=True)
def _no_data_folder(monkeypatch):
    monkeypatch.delenv("LEAKBOARD_DATA", raising=False)


@pytest.fixture
def sst2(tmp_path):
    """A data folder with a small sst2 in it."""
    write(tmp_path / "sst2", "train", rows_of(40))
    write(tmp_path / "sst2", "dev", rows_of(10, 100))
    return tmp_path
