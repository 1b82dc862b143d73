"""Checks of untrusted input: paths, text and JSON."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Any

from leakboard.bench.contracts.errors import LeakboardError

MAX_DEPTH, LONGEST_TEXT = 12, 10_000
MOST_PARTS = 200_000
"""Largest number of lists and objects in one JSON text; each needs much more memory than its two brackets."""
LARGEST = 2**63
JOINERS = {"\u200c", "\u200d"}
"""Invisible characters that some languages and emoji need."""


class Refused(Exception):
    """Untrusted input was rejected; the message says why."""


def plain(text: object, most: int = 300) -> str:
    """Untrusted text for a terminal: control characters escaped, and truncated to `most` characters."""
    shown = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in str(text)[: most + 1])
    return shown if len(shown) <= most else f"{shown[:most]}…"


def visible(text: str) -> str:
    """Returns a text if it is one line without invisible characters.

    Raises:
        ValueError: it contains a control character, a line break, or a character that hides or reorders others.
    """
    for c in text:
        if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Cn", "Zl", "Zp") and c not in JOINERS:
            raise ValueError(f"holds the invisible character U+{ord(c):04X}")
    return text


def place(given: str | Path, what: str = "") -> Path:
    """Expands `~` in a path of the user, which need not exist.

    Args:
        what: the option or file that contains the path, for error messages.

    Raises:
        LeakboardError: the path is invalid or not accessible, begins with the home of an unknown user, or is
            a broken link.
    """
    head = f"{what}: " if what else ""
    path = Path(given)
    try:
        path = path.expanduser()
        path.stat()
    except RuntimeError as error:
        user = path.parts[0]
        raise LeakboardError(
            f"{head}{plain(given)}: '{plain(user, 40)}' is not a user of this machine; write out the path"
        ) from error
    except ValueError as error:
        raise LeakboardError(
            f"{head}{plain(given)}: not a valid path ({error}); a path contains no NUL and no incomplete character"
        ) from error
    except (FileNotFoundError, NotADirectoryError) as error:
        if path.is_symlink():
            raise LeakboardError(
                f"{head}{plain(given)}: is a link to {plain(path.readlink())}, which does not exist"
            ) from error
    except OSError as error:
        raise LeakboardError(
            f"{head}{plain(given)}: cannot be reached ({error.strerror})"
        ) from error
    return path


def path_of(name: str, value: str | Path | None) -> Path | None:
    """Converts an argument to a path; None stays None.

    Raises:
        LeakboardError: the argument is neither text nor a path; the message names it.
    """
    if value is not None and not isinstance(value, str | Path):
        raise LeakboardError(f"{name}: expected a path, got {type(value).__name__} {value!r:.60}")
    return None if value is None else Path(value)


def parsed(raw: bytes, what: str, parts: int = MOST_PARTS) -> Any:
    """Parses untrusted JSON within bounds.

    Args:
        what: name of the text, for error messages.
        parts: largest number of lists and objects.

    Raises:
        Refused: invalid JSON, a duplicate key, deep nesting, too many parts, numbers that are not finite or
            have more than 64 bits, long texts, or invisible characters.
    """
    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{what} is not valid JSON ({error})") from error
    # A stack of iterators: a list of ten million numbers costs nothing more.
    inside: list[Iterator[Any]] = [iter([value])]
    seen, texts = 0, set[str]()
    while inside:
        for at in inside[-1]:
            if isinstance(at, dict | list):
                seen += 1
                if len(inside) > MAX_DEPTH:
                    raise Refused(f"{what} is nested more than {MAX_DEPTH} levels deep")
                if seen > parts:
                    raise Refused(f"{what} holds more than {parts:,} lists and objects")
                if at and set(map(type, at)) == {int} and isinstance(at, list):
                    if not -LARGEST < min(at) <= max(at) < LARGEST:
                        raise Refused(f"{what} holds a number that has more than 64 bits")
                    continue  # nearly all of a record, and quick
                inside.append(chain(at, at.values()) if isinstance(at, dict) else iter(at))
                break
            if isinstance(at, str):
                if at not in texts:
                    _bounded(at, what)
                    texts.add(at)
            # As a float an integer of 400 digits would overflow.
            elif isinstance(at, int | float) and not (abs(at) < LARGEST and isfinite(at)):
                raise Refused(f"{what} holds a number that is not finite or has more than 64 bits")
        else:
            inside.pop()
    return value


def _bounded(text: str, what: str) -> None:
    if len(text) > LONGEST_TEXT:
        raise Refused(f"{what} holds a text of more than {LONGEST_TEXT:,} characters")
    if text.isascii() and text.isprintable():
        return  # true of nearly all texts, and quick
    try:
        visible(text.replace("\n", " ").replace("\t", " "))
    except ValueError as error:
        raise Refused(f"{what}: '{plain(text, 80)}' {error}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found
