"""Records for results tables and comparisons: cells with one inversion each."""

from __future__ import annotations

from records import leak, record

CHANCE = 0.2


def cell(defense, seed=0, utility=0.9, success=0.5, params=None, **fields):
    """A record with one inversion at a chance level of 0.2; 'none' is undefended."""
    found = [leak(success, chance=CHANCE)] if success is not None else []
    found += fields.pop("more", [])
    fields = {"undefended": defense == "none"} | fields
    return record(defense, params, seed, utility, found, **fields)


def seeds(defense, utilities, successes, **fields):
    pairs = zip(utilities, successes, strict=True)
    return [cell(defense, s, u, x, **fields) for s, (u, x) in enumerate(pairs)]
