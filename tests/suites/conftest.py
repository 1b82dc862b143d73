"""Suite files that are read with few methods to name."""

from __future__ import annotations

from pathlib import Path

import pytest
from suite_files import Learned, Noise, Plain, Prior, Read

import leakboard.bench.methods.registry as registry
from leakboard.bench.suites.suite import Suite, load_suite


@pytest.fixture(autouse=True)
def _methods(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "real_methods" not in request.fixturenames:
        monkeypatch.setattr(registry, "defenses", lambda: {"none": Plain, "sap": Noise})
        monkeypatch.setattr(registry, "attacks", lambda: {"aia-mlp": Learned, "prior": Prior})


@pytest.fixture
def real_methods() -> None:
    """Asks for the project's own methods instead of the ones above."""


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    monkeypatch.chdir(tmp_path)

    def read(text: str) -> Suite:
        Path("my.yaml").write_text(text, encoding="utf-8")
        return load_suite("my.yaml")

    return read
