"""Support for computations: progress, groups, and a cache of what was learned from public data."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.random import Generator

Progress = Callable[[str, Iterable[Any], int], Iterable[Any]]
"""Function that shows progress over an iterable of known length: (what, items, total) → items."""


def quietly(what: str, items: Iterable[Any], total: int) -> Iterable[Any]:
    """Returns the items without showing progress."""
    return items


T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """The items by their key, both in order of appearance."""
    found: dict[K, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


DEFAULT_CAPACITY = 24
"""Default number of results in a `Memory`."""


class Memory:
    """Cache of results that depend on public data only, so that cells of different seeds can share them.

    Args:
        capacity: largest number of results; the least recently used result is dropped first.
    """

    def __init__(self, capacity: int = DEFAULT_CAPACITY) -> None:
        self._capacity, self._known = capacity, OrderedDict[str, object]()

    def recall(self, key: str, learn: Callable[[Generator], T]) -> T:
        """The result with a key, which is computed if the cache does not have it.

        Args:
            key: must determine everything that the result depends on.
            learn: computes the result; its random generator depends on the key alone, so that the result
                does not depend on earlier cells.
        """
        if key not in self._known:
            seed = hashlib.sha256(key.encode()).digest()
            result = learn(np.random.default_rng(int.from_bytes(seed)))
            while len(self._known) >= self._capacity:
                self._known.popitem(last=False)
            self._known[key] = result
        self._known.move_to_end(key)
        return self._known[key]  # type: ignore[return-value]
