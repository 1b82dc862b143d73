"""Shadow models: what attackers train themselves, like the target, is cells of the plan.

A shadow model has the target's data, settings and defense. Its coins, initial values, order and noise
are its own, so that it tells what models do, and nothing of this one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from leakboard.bench.contracts import Cell, Leak, Record, attack_id
from leakboard.bench.methods import Attack, Shadows, spec_of
from leakboard.bench.records import Corrupt
from leakboard.bench.running.failures import failed
from leakboard.bench.running.plan import Planned

MILLION = 1_000_000
"""Scores stand in records as whole numbers: millionths."""


def with_shadows(
    planned: Planned, read: Callable[[str], Record | None]
) -> tuple[Planned, list[Leak]]:
    """Hands each attack that trains shadow models what it measured of them.

    Args:
        read: a record by its key, None where there is none yet.

    Returns:
        The cell with it and with the attacks that can start, and why the others cannot.
    """
    ready, told, idle = [], {}, list[Leak]()
    for pairing in planned.pairings:
        wanted = pairing.attack.shadowed if pairing.goals else None
        if wanted:
            found = gathered(planned.cell, *wanted, read)
            if isinstance(found, str):
                # Not final: asked for again, a run trains what is missing.
                idle += [*failed(pairing, "failed", found), *pairing.skipped()]
                continue
            told[pairing.attack] = found
        ready.append(pairing)
    return replace(planned, shadows=told, pairings=tuple(ready)), idle


def gathered(
    target: Cell, number: int, measure: Attack, read: Callable[[str], Record | None]
) -> Shadows | str:
    """What an attack measured of each shadow model of a cell, or in words what is missing."""
    scores, members = [], []
    for shadow in range(number):
        name = f"shadow model {shadow + 1} of {number}"
        try:
            record = read(target.model_copy(update={"shadow": shadow}).key)
        except Corrupt as error:
            return f"the record of {name} is damaged ({error}); run again"
        if record is None:
            return f"{name} is not trained yet; run again"
        if record.status != "ok":
            return f"{name} ended {record.status}: {record.reason}"
        own = attack_id(spec_of(measure))
        leaks = [leak for leak in record.leaks if attack_id(leak.attack) == own]
        if not leaks or leaks[0].status != "ok":
            why = leaks[0].reason if leaks else "run again"
            return f"{name} was not measured by {measure}: {why}"
        scores.append(leaks[0].raw["millionths"])
        members.append(leaks[0].raw["member"])
    return Shadows(np.array(scores) / MILLION, np.array(members, dtype=bool))
