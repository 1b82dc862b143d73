"""ABCD (Chen et al. 2021): role-played customer service dialogues with known secrets of each customer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, TypeAdapter, ValidationError

from leakboard.bench.contracts import LeakboardError
from leakboard.bench.tasks.content import read_bytes
from leakboard.bench.tasks.task import Span, Split, Task

FILES = ("abcd_v1.1.json", "abcd_v1.1.json.gz")
"""Names of the authors' file, unpacked or packed."""
KINDS = {
    "customer_name": "name",
    "email": "email",
    "phone": "phone",
    "username": "username",
    "account_id": "account",
    "full_address": "address",
    "street_address": "address",
    "zip_code": "zip",
    "order_id": "order",
}
"""Secret fields of a scenario: field of `personal` or `order` → kind."""


class _Scenario(BaseModel):
    personal: dict[str, Any] = {}
    order: dict[str, Any] = {}


class _Conversation(BaseModel):
    scenario: _Scenario
    original: list[tuple[str, str]]


_CONVERSATIONS = TypeAdapter(dict[str, list[_Conversation]])


def abcd(folder: Path) -> Task:
    """Conversations as texts, in the authors' splits, without system notes.

    Secrets are all occurrences of the scenario's values, regardless of case, and of each part of a name.

    Raises:
        LeakboardError: the file is not there or not theirs.
    """
    paths = [folder / name for name in FILES if (folder / name).is_file()]
    if not paths:
        raise LeakboardError(f"{folder}: expected the authors' file, {' or '.join(FILES)}")
    path = paths[0]
    try:
        splits = _CONVERSATIONS.validate_json(read_bytes(path))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise LeakboardError(f"{path}, {where}: {first['msg']}") from error
    for name in ("train", "dev"):
        if not splits.get(name):
            raise LeakboardError(f"{path}: no conversations under '{name}'")
    return Task("abcd", (), {n: _split(own) for n, own in splits.items()}, source=f"file: {path}")


def _split(conversations: Iterable[_Conversation]) -> Split:
    texts, secrets = [], []
    for one in conversations:
        turns = [f"{who.title()}: {text}" for who, text in one.original if who != "action"]
        texts.append(" ".join(" ".join(turns).split()))
        secrets.append(_secrets(texts[-1], one.scenario))
    return Split(tuple(texts), np.zeros(len(texts), np.int64), secrets=tuple(secrets))


def _secrets(text: str, scenario: _Scenario) -> tuple[Span, ...]:
    kinds: dict[str, str] = {}
    for own, kind in KINDS.items():
        value = (scenario.personal | scenario.order).get(own)
        words = " ".join(str(value or "").lower().split())
        for part in [words, *(words.split() if kind == "name" else [])]:
            if len(part) > 1:
                kinds.setdefault(part, kind)
    if not kinds:
        return ()
    # Longest first: an address before its street, a whole name before its parts.
    longest = sorted(kinds, key=len, reverse=True)
    pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, longest))})(?!\w)"
    found = re.finditer(pattern, text, re.IGNORECASE)
    return tuple(Span(m.start(), m.end(), kinds[m[0].lower()]) for m in found)
