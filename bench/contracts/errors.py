"""Errors that a user can act on. The command line prints their message and exits with code 2."""

from collections.abc import Iterable
from difflib import get_close_matches


class LeakboardError(Exception):
    """An error that the user can correct; the message says where, what was expected and what to do."""


class MissingExtra(LeakboardError):
    """A package of an optional extra is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        self.parts = what, extra
        super().__init__(
            f"{what} is not installed. It comes with the extra '{extra}': pip install 'leakboard[{extra}]'"
        )


MOST_NAMES = 1000
"""Largest number of names that are searched for the nearest; a search in a large table would take minutes."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence with the nearest valid name, or with all names if none is near."""
    names = sorted(known)
    if len(names) > MOST_NAMES:
        return f"{len(names):,} are known."
    near = get_close_matches(name[:200].lower(), names, n=1, cutoff=0.6)
    if near:
        return f"Did you mean '{near[0]}'?"
    return f"Known: {', '.join(names)}." if names else "None are known."
