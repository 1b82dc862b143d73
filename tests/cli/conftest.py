"""Records that the command left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock
from quick_suite import SUITE


@pytest.fixture(scope="session")
def records(tmp_path_factory):
    """Records of one small suite, made by the installed command; the workers of a test run share them, and only read."""
    place = tmp_path_factory.getbasetemp()
    folder = (place.parent if "PYTEST_XDIST_WORKER" in os.environ else place) / "quick"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            folder.mkdir()
            (folder / "quick.yaml").write_text(SUITE)
            script = Path(sys.executable).with_name("leakboard")
            done = subprocess.run(
                [script, "run", "quick.yaml"],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
    return folder / "results" / "local" / "quick"
