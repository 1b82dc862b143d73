"""What a fresh process prints."""

from __future__ import annotations

import os
import subprocess
import sys

from paths import ROOT


def printed(code: str, hash_seed: str = "random") -> str:
    """The output of Python code in a process of its own, stripped."""
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
