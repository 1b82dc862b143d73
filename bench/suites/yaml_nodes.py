"""YAML as a tree of nodes, with limits on size and errors that name the line."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from leakboard.bench.contracts import LeakboardError, place, plain, visible

MOST_BYTES = 2**18
"""Maximum size of a file; parsing YAML takes seconds per megabyte."""
LONGEST = 10_000
"""Maximum characters of one value."""


def read_nodes(path: Path) -> yaml.Node | None:
    """The root node of a file, or None if it is empty.

    Raises:
        LeakboardError: it cannot be read, or is not YAML.
    """
    path = place(path)
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise LeakboardError(f"{path}: is not a regular file")  # reading a pipe could block
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise LeakboardError(
                f"{path}: is larger than {MOST_BYTES // 1024} KiB; a suite says what to run, and data "
                "belong in separate files"
            )
        text = raw.decode("utf-8-sig")
    except OSError as e:
        raise LeakboardError(f"{path}: cannot be read: {e.strerror}") from e
    except UnicodeDecodeError as e:
        line = e.object[: e.start].count(b"\n") + 1
        raise LeakboardError(f"{path}:{line}: is not UTF-8 text; save it as UTF-8") from e
    return parse_nodes(text, str(path))


def parse_nodes(text: str, where: str) -> yaml.Node | None:
    """The root node of a text, or None if it is empty.

    Args:
        where: the file, for messages.

    Raises:
        LeakboardError: it is not YAML.
    """
    try:
        root: yaml.Node | None = yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        line = mark.line + 1 if mark else 1
        advice = "; indent with spaces" if "'\\t'" in str(e.problem) else ""
        what = plain(": ".join(part for part in (e.context, e.problem) if part))
        raise LeakboardError(f"{where}:{line}: not valid YAML: {what}{advice}") from e
    except yaml.reader.ReaderError as e:
        line = text[: e.position].count("\n") + 1
        raise LeakboardError(f"{where}:{line}: not valid YAML: {e.reason}") from e
    except RecursionError as e:
        raise LeakboardError(f"{where}:1: is nested too deeply to be read") from e
    except (ValueError, OverflowError) as e:  # numbers out of range in an escape or a version
        raise LeakboardError(f"{where}:1: not valid YAML: {plain(e)}") from e
    return root


def fault(text: str) -> str | None:
    """The reason why a value or a key of a suite is invalid, or None."""
    if len(text) > LONGEST:
        return f"is longer than {LONGEST:,} characters"
    try:
        visible(text.replace("\n", " ").replace("\t", " "))
    except ValueError as e:
        return str(e)
    return None


def scalar(text: str) -> str | int | float | None:
    """Parse an unquoted YAML value. Unlike in YAML 1.1, 1e-3 is a number, and `no` and `on` are strings.

    `true` and `false` are strings, too: boolean fields parse them, and numeric fields reject them.

    Raises:
        ValueError: a whole number of more than 64 bits.
    """
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if re.fullmatch(r"[-+]?[0-9]+", text):
        if len(text) > 18:
            raise ValueError("must be a whole number of at most 18 characters")
        return int(text)
    if re.fullmatch(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", text):
        return float(text)
    return text
