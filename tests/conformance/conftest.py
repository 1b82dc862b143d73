"""What examinations of methods share."""

from __future__ import annotations

import pytest
from remembering import remember


@pytest.fixture(autouse=True)
def trained_once(monkeypatch):
    """Methods are examined on the same few cells, so each of these is trained once for all."""
    remember(monkeypatch)
