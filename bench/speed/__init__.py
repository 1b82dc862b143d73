"""Speed as ratios measured in one run: `python -m leakboard.bench.speed [NAME …]`, see `__main__`.

The names of comparisons come in, or none for all but the long ones.
Out goes one table of figures with goals, limits and verdicts. Machines are shared and noisy, so most are
ratios of medians over interleaved repeats of two ways to do the same thing, and no test depends on one.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

REPEATS = 3


def seconds(*ways: Callable[[], object], repeats: int = REPEATS) -> list[list[float]]:
    """For each way the seconds of every repeat; each repeat runs all of them in turn."""
    taken: list[list[float]] = [[] for _ in ways]
    for _ in range(repeats):
        for way, own in zip(ways, taken, strict=True):
            start = time.perf_counter()
            way()
            own.append(time.perf_counter() - start)
    return taken


def interleaved(*ways: Callable[[], object], repeats: int = REPEATS) -> list[float]:
    """Median seconds of each way."""
    return [statistics.median(taken) for taken in seconds(*ways, repeats=repeats)]
