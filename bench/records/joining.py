"""Records of one cell from several places, as one."""

from __future__ import annotations

from typing import Any

from leakboard.bench.contracts import Record, attack_id


def differing(first: Record, second: Record) -> list[str]:
    """In what two records of one cell differ, of all that both measured; nothing where they agree."""
    a, b = _without_leaks(first), _without_leaks(second)
    found = [name for name in a if a[name] != b[name]]
    ours, theirs = _leaks(first), _leaks(second)
    return found + [
        f"attack {leaks[0]['attack']['name']}"
        for attack, leaks in ours.items()
        if theirs.get(attack, leaks) != leaks
    ]


def _without_leaks(record: Record) -> dict[str, Any]:
    return {name: value for name, value in record.outcome().items() if name != "leaks"}


def _leaks(record: Record) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for leak, told in zip(record.leaks, record.outcome()["leaks"], strict=True):
        found.setdefault(attack_id(leak.attack), []).append(told)
    return found
