"""Where the pages of the site stand."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

SAFE = re.compile(r"[a-z0-9][a-z0-9_-]{0,60}")


def slug(name: str) -> str:
    """A file name for a method or task: its own name where that is harmless, else digits of its hash."""
    if SAFE.fullmatch(name):
        return name
    return f"x-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


@dataclass(frozen=True)
class Links:
    """Links on a page, from which `root` leads to the root of the site."""

    root: str = ""

    def method(self, kind: str, name: str) -> str:
        """To the page of a defense or an attack."""
        return f"{self.root}{kind}s/{slug(name)}.html"

    def task(self, name: str) -> str:
        """To the page of a task."""
        return f"{self.root}tasks/{slug(name)}.html"

    def record(self, key: str) -> str:
        """To the page of a record."""
        return f"{self.root}records/{key}.html"
