"""What the user of a defense chooses, apart from what may befall it."""

from __future__ import annotations

import json
from collections.abc import Iterable

from bench.methods import registry
from leaderboards.tables.frame import canonical


def choices(defense: str, params: Iterable[str]) -> list[str]:
    """The parameters, as JSON each, without those that state circumstances.

    Settings of equal choice are one offer to the customer; the worst of them speaks for it.
    """
    known = registry.defenses().get(defense)
    given = known.circumstances if known else frozenset()
    return [
        canonical({name: value for name, value in json.loads(text).items() if name not in given})
        for text in params
    ]
