"""What comes from outside: paths, text and JSON, bounded before anything is made of them."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Any

from leakboard.bench.contracts.errors import LeakboardError

DEEPEST, LONGEST_TEXT = 12, 10_000
MOST_PARTS = 200_000
"""Lists and objects in one JSON text: each takes many times the memory of its two brackets."""
JOINERS = {"\u200c", "\u200d"}
"""Invisible, and part of how some languages and emoji are spelled."""


class Refused(Exception):
    """Something from outside that is not what it has to be; the message says why."""


def plain(text: object, most: int = 300) -> str:
    """Foreign text for a terminal: no control characters, and an end."""
    shown = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in str(text)[: most + 1])
    return shown if len(shown) <= most else f"{shown[:most]}…"


def visible(text: str) -> str:
    """The text itself, if it is one line that shows all it holds.

    Raises:
        ValueError: a control character, a line break, or a character that hides or turns others.
    """
    for c in text:
        if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Cn", "Zl", "Zp") and c not in JOINERS:
            raise ValueError(f"holds the invisible character U+{ord(c):04X}")
    return text


def place(given: str | Path, what: str = "") -> Path:
    """A path as a user gives it, with `~` for a home folder; nothing need be there.

    Args:
        what: the option or file that names it, for messages.

    Raises:
        LeakboardError: no file system has such a path, it cannot be reached, it begins with the home of
            nobody, or is a link to nothing.
    """
    head = f"{what}: " if what else ""
    path = Path(given)
    try:
        path = path.expanduser()
        path.stat()
    except RuntimeError as error:
        user = path.parts[0]
        raise LeakboardError(
            f"{head}{plain(given)}: '{plain(user, 40)}' is the home of no user here; write the path out"
        ) from error
    except ValueError as error:
        raise LeakboardError(
            f"{head}{plain(given)}: no path ({error}); a path holds no NUL and only whole characters"
        ) from error
    except (FileNotFoundError, NotADirectoryError) as error:
        if path.is_symlink():
            raise LeakboardError(
                f"{head}{plain(given)}: is a link to {plain(path.readlink())}, which is not there"
            ) from error
    except OSError as error:
        raise LeakboardError(
            f"{head}{plain(given)}: cannot be reached ({error.strerror})"
        ) from error
    return path


def path_of(name: str, value: str | Path | None) -> Path | None:
    """An argument that may be a path, as one.

    Raises:
        LeakboardError: it is something else; the message has its name.
    """
    if value is not None and not isinstance(value, str | Path):
        raise LeakboardError(f"{name}: expected a path, got {type(value).__name__} {value!r:.60}")
    return None if value is None else Path(value)


def parsed(raw: bytes, what: str, parts: int = MOST_PARTS) -> Any:
    """JSON from a stranger as a value that every part of this program can hold.

    Args:
        what: what it is, for messages.
        parts: so many lists and objects it may hold.

    Raises:
        Refused: not JSON, a key that stands twice, nested deeply, many parts, numbers that are no
            finite number or have more than 64 bits, long texts, or characters that do not show.
    """
    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{what} is not whole JSON ({error})") from error
    # A stack of iterators: a list of ten million numbers costs nothing more.
    inside: list[Iterator[Any]] = [iter([value])]
    seen = 0
    while inside:
        for at in inside[-1]:
            if isinstance(at, dict | list):
                seen += 1
                if len(inside) > DEEPEST:
                    raise Refused(f"{what} is nested more than {DEEPEST} levels deep")
                if seen > parts:
                    raise Refused(f"{what} holds more than {parts:,} lists and objects")
                inside.append(chain(at, at.values()) if isinstance(at, dict) else iter(at))
                break
            if isinstance(at, str):
                _bounded(at, what)
            # As a float an integer of 400 digits would overflow.
            elif isinstance(at, int | float) and not (abs(at) < 2**63 and isfinite(at)):
                raise Refused(f"{what} holds a number that is not finite or has more than 64 bits")
        else:
            inside.pop()
    return value


def _bounded(text: str, what: str) -> None:
    if len(text) > LONGEST_TEXT:
        raise Refused(f"{what} holds a text of more than {LONGEST_TEXT:,} characters")
    try:
        visible(text.replace("\n", " ").replace("\t", " "))
    except ValueError as error:
        raise Refused(f"{what}: '{plain(text, 80)}' {error}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found
