"""Errors that a user can act on. The command line prints their message and exits with code 2."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class LeakboardError(Exception):
    """An error that the user can correct; the message says where, what was expected and what to do."""


class MissingExtra(LeakboardError):
    """A package of an optional extra is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        self.parts = what, extra
        super().__init__(
            f"{what} is not installed. It comes with the extra '{extra}': pip install 'leakboard[{extra}]'"
        )


def teaches(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Answers arguments by which a function is often called with the name that they have; `goal="hide"`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def checked(*args: P.args, **given: P.kwargs) -> R:
            for wrong in names.keys() & given.keys():
                raise LeakboardError(f"{wrong}: the argument is called {names[wrong]}")
            return function(*args, **given)

        return checked

    return decorate


MOST_NAMES = 1000
"""Largest number of names that are searched for the nearest; a search in a large table would take minutes."""


def did_you_mean(name: str, known: Iterable[str], listed: Iterable[str] = ()) -> str:
    """A sentence with the nearest valid name; if none is near, with the names to list, which are all by default."""
    names = sorted(known)
    if len(names) > MOST_NAMES:
        return f"{len(names):,} are known."
    near = get_close_matches(name[:200].lower(), names, n=1, cutoff=0.6)
    if near:
        return f"Did you mean '{near[0]}'?"
    return f"Known: {', '.join(listed or names)}." if names else "None are known."
