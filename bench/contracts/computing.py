"""Support for long computations: progress, and a cache of what was learned from public data."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

Progress = Callable[[str, Iterable[Any], int], Iterable[Any]]
"""Wraps an iterable of known length to show progress: (what, items, total) → items."""


def quietly(what: str, items: Iterable[Any], total: int) -> Iterable[Any]:
    """Shows nothing."""
    return items


T = TypeVar("T")
KEPT = 24
"""So much stays in memory, where nothing else is said."""


class Memory:
    """What was learned from public things alone: cells of other seeds and rows meet it, too.

    Args:
        kept: so much stays in memory.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._kept, self._known = kept, OrderedDict[str, object]()

    def recall(self, key: str, learn: Callable[[np.random.Generator], T]) -> T:
        """What is known under a key, which names all that it depends on; else it is learned now.

        Args:
            learn: may draw from what it is given, which depends on the key alone, so that a cell finds
                the same whichever cells were run before it.
        """
        if key not in self._known:
            seed = hashlib.sha256(key.encode()).digest()
            found = learn(np.random.default_rng(int.from_bytes(seed)))
            while len(self._known) >= self._kept:
                self._known.popitem(last=False)
            self._known[key] = found
        self._known.move_to_end(key)
        return self._known[key]  # type: ignore[return-value]
