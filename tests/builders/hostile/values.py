"""Values, bytes and files of JSON with something wrong in them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

TEXTS = [
    "", " ", "\0", "a\0b", "\x1b[2J", "\x07", "[/red]", "[bold]x[/]", "\u202egnp.exe", "\ud800", "\uffff",
    "../../x", "/etc/hostname", "~nouser/x", "~", "C:\\x", "x" * 300, "x" * 5000, "a/" * 2000, "nan", "1e999",
    "!!python/object/apply:os.system [ls]", "{{7*7}}", "${jndi:ldap://x}", "%s%n", "None", "true", "null",
    "<script>alert(1)</script>", "9" * 6000, "é", "漢字", "👩‍💻", "a\nb", "\t", "*", "&a [*a]", "- - -",
]  # fmt: skip
NUMBERS = [
    0, -1, 1, 2, 3, 10**6, 10**9, 10**12, 2**31, 2**53, 2**63, 2**64, -(2**63), 10**30, 10**400, 0.5, -0.0,
    1e-300, 1e308, float("nan"), float("inf"), float("-inf"), True, False,
]  # fmt: skip
JUNK = [b"", b"[" * 200_000, b"9" * 6000, b"{}", b"[]", b"\0", b"null"]
"""In the place of a file of JSON."""
DEEP: list[Any] = []
for _ in range(40):
    DEEP = [DEEP]


def strange(rng: random.Random) -> Any:
    """A value that hardly belongs anywhere."""
    return rng.choice(
        [
            lambda: rng.choice(TEXTS),
            lambda: rng.choice(NUMBERS),
            lambda: None,
            list,
            dict,
            lambda: DEEP,
            lambda: [rng.choice(NUMBERS) for _ in range(rng.randrange(5))],
            lambda: {rng.choice(TEXTS): rng.choice(NUMBERS)},
            lambda: [rng.choice(TEXTS)] * rng.randrange(1, 300),
            lambda: list(range(rng.choice([10, 1000, 20_000]))),
        ]
    )()


def changed(rng: random.Random, value: Any, times: int = 1) -> Any:
    """A JSON value with something in it replaced, added, doubled or taken away."""
    value = json.loads(json.dumps(value))
    for _ in range(times):
        at, way = value, []
        while isinstance(at, dict | list) and at and (not way or rng.random() < 0.8):
            key = rng.choice(list(at) if isinstance(at, dict) else range(len(at)))
            way.append((at, key))
            at = at[key]
        if not way:
            return strange(rng)
        inside, key = way[-1]
        match rng.randrange(4):
            case 0:
                del inside[key]
            case 1 if isinstance(inside, dict):
                inside[str(rng.choice(TEXTS))] = strange(rng)
            case 2 if isinstance(inside, list):
                inside.insert(key, inside[key])
            case _:
                inside[key] = strange(rng)
    return value


def flipped(rng: random.Random, raw: bytes) -> bytes:
    """Some bytes changed, or the end cut off."""
    out = bytearray(raw)
    for _ in range(rng.randrange(1, 9)):
        if out:
            out[rng.randrange(len(out))] = rng.randrange(256)
    if rng.random() < 0.3:
        del out[rng.randrange(len(out) + 1) :]
    return bytes(out)


def dumped(value: Any) -> bytes:
    """As JSON, whatever numbers and characters are in it."""
    return json.dumps(value).encode("utf-8", "replace")


def own(path: Path) -> bool:
    """Whether it is a file of the folder itself: no link is ever written through."""
    return path.is_file() and not path.is_symlink()


def spoil(rng: random.Random, path: Path, words: Sequence[str]) -> None:
    """Breaks a file that holds a JSON object: bytes of it, all of it, one of `words`, or any value."""
    if not own(path):
        return
    match rng.randrange(4):
        case 0:
            path.write_bytes(flipped(rng, path.read_bytes()))
        case 1:
            path.write_bytes(rng.choice(JUNK))
        case kind:
            with suppress(ValueError, RecursionError, TypeError):  # spoiled before
                value = json.loads(path.read_bytes())
                value = (
                    value | {rng.choice(words): strange(rng)} if kind == 2 else changed(rng, value)
                )
                path.write_bytes(dumped(value))
