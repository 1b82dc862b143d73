"""Where things lie: the checkout, what is published in it, and the real datasets."""

from __future__ import annotations

import os
from pathlib import Path

from leakboard.bench.records.store import MANIFEST

ROOT = Path(__file__).parents[2]
HOUSE = ("attacks", "bench", "defenses", "leaderboards")
"""The folders of the code, to which the package `leakboard` has links."""
README = ROOT / "results" / "README.md"
PUBLISHED = sorted(
    path for path in (ROOT / "results/published").rglob("*.json") if path.name != MANIFEST
)
DATA = Path(os.environ.get("LEAKBOARD_DATA") or ROOT.parent / "shared" / "data")
