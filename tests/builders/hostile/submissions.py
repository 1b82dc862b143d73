"""Submissions."""

from __future__ import annotations

import json
import random
import stat
import zipfile
from typing import Any

from submitted import manifest, members, resealed, zipped

from hostile.values import changed, dumped, flipped, strange
from leakboard.bench.contracts.cell import Cell


def drawn(seed: int, records: dict[str, bytes]) -> bytes:
    """A file that says it is a submission."""
    rng = random.Random(f"submission {seed}")
    content = dict(records)
    key = rng.choice(sorted(content))
    fields: dict[str, Any] = {}
    match rng.randrange(8):
        case 0 | 1 | 2:  # as a forger would who knows the program, or does not
            value = changed(rng, json.loads(content.pop(key)), rng.choice([1, 1, 2]))
            if isinstance(value, dict) and rng.random() < 0.8:
                try:
                    value["key"] = Cell.model_validate(value.get("cell")).key
                    content[value["key"]] = resealed(value)
                except Exception:  # what was changed is no cell at all
                    content[key] = dumped(value)
            else:
                content[key] = dumped(value)
        case 3:
            word = rng.choice(
                ["method", "link", "note", "leakboard", "format", "verified", "colour"]
            )
            fields = {word: strange(rng)}
        case 4:
            content[key] = flipped(rng, content[key])
        case 5:
            big = rng.choice(
                [
                    b"[" * 10**6,
                    b"0" * (2**24 + 1),
                    b"[[],[]," * 10**6,
                    b'{"a":1,' * 10**5,
                    b"9" * 10**6,
                ]
            )
            content[key] = big
    named = members(content, **fields)
    match rng.randrange(8):
        case 0:
            raw = dumped(changed(rng, json.loads(manifest(content, **fields)), 1))
            named[0] = ("manifest.json", raw)
        case 1:
            name = rng.choice(
                [
                    "../x",
                    "/x",
                    "manifest.json",
                    "records/",
                    "records/" + "0" * 16 + ".json",
                    "a\\b",
                    "é",
                ]
            )
            named.insert(rng.randrange(len(named) + 1), (name, b"{}"))
        case 2:
            named = named[: rng.randrange(len(named) + 1)]
    mode = rng.choice([stat.S_IFREG] * 9 + [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO])
    kind = rng.choice([zipfile.ZIP_DEFLATED] * 9 + [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2])
    packed = zipped(named, mode | 0o644, kind)
    if rng.random() < 0.1:
        packed = flipped(rng, packed)
    return packed if rng.random() < 0.97 else rng.randbytes(rng.randrange(300))
