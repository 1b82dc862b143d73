"""Records that the command left behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from quick_suite import SUITE
from shared_folders import shared_folder


def run_quick_suite(folder: Path) -> None:
    (folder / "quick.yaml").write_text(SUITE)
    script = Path(sys.executable).with_name("leakboard")
    done = subprocess.run(
        [script, "run", "quick.yaml"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def records(tmp_path_factory):
    """Records of one small suite, made by the installed command in a process of its own."""
    return shared_folder(tmp_path_factory, "quick", run_quick_suite) / "results" / "local" / "quick"
