"""How work of known length shows its progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Progress = Callable[[str, Iterable[Any], int], Iterable[Any]]
"""Wraps an iterable of known length to show progress: (what, items, total) → items."""


def quietly(what: str, items: Iterable[Any], total: int) -> Iterable[Any]:
    """Shows nothing."""
    return items
