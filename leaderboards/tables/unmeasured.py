"""Why a printed setting was not measured here."""

from __future__ import annotations

import json
from collections.abc import Sequence

from leakboard.leaderboards.tables.frame import Row
from leakboard.leaderboards.tables.here import Here
from leakboard.leaderboards.tables.parameters import format_parameter

BLOCKS = {"minilm": 6, "roberta-large": 24}
"""Of models that are cut after one."""


def why_not(theirs: Row, every: Sequence[Here]) -> str:
    """Why none of the settings that were measured is the printed one, in words.

    Args:
        theirs: a row of `leakboard.leaderboards.tables.printed.printed`.
        every: all settings that were measured of its tasks and defenses.
    """
    task, defense = theirs["task"], theirs["defense"]
    of_task = [one for one in every if one.row["task"] == task]
    if not of_task:
        return f"no records of {task}"
    own = [one for one in of_task if one.row["defense"] == defense]
    if not own:
        return f"no records of {defense} on {task}"
    stated = json.loads(theirs["params"])
    missing = [
        _missing(name, value, own)
        for name, value in stated.items()
        if all(one.stated.get(name, "") != value for one in own)
    ]
    if missing:
        return "; ".join(missing)
    if any(all(one.stated.get(n, "") == v for n, v in stated.items()) for one in own):
        return "only with other values of what the paper does not state"
    return "each of its values was measured, but not all of them together"


def _missing(name: str, value: object, own: Sequence[Here]) -> str:
    """Of a value that no setting has."""
    if name == "split" and isinstance(value, int):
        models = sorted({str(one.row["model"]) for one in own})
        short = [
            f"{one} has {BLOCKS[one]}" for one in models if BLOCKS.get(one, value + 1) <= value
        ]
        return f"no cut after block {value}" + (f": {', '.join(short)}" if short else "")
    known = {one.stated[name] for one in own if name in one.stated}
    numbers = sorted(one for one in known if isinstance(one, int | float))
    if isinstance(value, int | float) and numbers:
        return f"no {format_parameter(name, value)} ({', '.join(f'{one:g}' for one in numbers)})"
    return f"no {format_parameter(name, value)}"
