"""The wait before anything happens."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

from benchmarking import Figure


def process(*words: str):
    """A run of Python."""
    return partial(subprocess.run, [sys.executable, *words], check=True, stdout=subprocess.DEVNULL)


def test_import_leakboard(comparison):
    comparison.measure(process("-c", "import leakboard"), rounds=5)
    comparison.report(Figure("start: import leakboard", comparison.median, 0.3, 0.6, "s"))


def test_help(comparison):
    show_help = process("-c", "from leakboard.bench.cli import main; main()", "--help")
    comparison.measure(show_help, process("-c", "import torch"), rounds=5)
    comparison.report(
        Figure("start: leakboard --help", comparison.median, 0.5, 1.0, "s"),
        Figure("  over import torch", comparison.ratio(), 0.3, 0.6),
    )
