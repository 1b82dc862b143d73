"""Certificates: how well an attack works where a defense is switched off. They are derived, never stored.

That an attack fails is evidence of privacy only where the same attack works on the undefended twin
of the defense. A success needs no such proof.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from statistics import fmean
from typing import get_args

from leakboard.bench.contracts import Leak, Objective, Record, attack_id
from leakboard.bench.methods import Defense, registry

NEEDED = 0.2
"""The strength from which on a certificate is one."""
UNSEEN = math.log2(40)
"""Bits of exposure that a secret which was never seen exceeds once in forty times."""

Strengths = dict[tuple[str, int], float]
Setting = tuple[str, str]
"""A defense and its parameters as JSON, whatever its version."""
What = tuple[str, ...]
"""What a certificate is valid for, besides the twin."""


def advantage_low(leak: Leak) -> float | None:
    """Lower end of the 95 % interval of (success − level) / (ceiling − level).

    The level is chance, or the floor where that is higher: what an attack reads from the untrained model
    says nothing of a defense, nor that it would see what training adds. A lone canary has no interval of its own. That of a secret which was never seen stands for it:
    such a one exceeds b bits with probability 2^−b.
    """
    success, level = leak.success, leak.level
    if success is None or level is None or level >= leak.ceiling:
        return None
    low = success.low
    if leak.metric.startswith("exposure") and success.n == 1:
        low = success.value - UNSEEN + success.chance
    return (low - level) / (leak.ceiling - level)


def strengths(records: Sequence[Record]) -> Strengths:
    """By record key and index of a leak, the strength of the certificate that the leak has.

    It is the mean, over the seeds of the twin, of `advantage_low` of the same attack for the same
    goal, attribute and channel, on the same data, model and cut: where the twin was trained as the
    cell was, else where the attack works best on it. Leaks whose twin was not attacked so are absent.
    Where the protection is off a cell is its own twin.
    """
    whole, twins_of = cache(_whole), cache(_twins)  # for this call: methods may be added later
    lows: dict[tuple[Setting, What], dict[str, list[float]]] = {}
    open_: dict[str, set[Setting]] = {}
    for record in records:
        if record.cell.shadow is not None or not record.undefended:
            continue
        twin = whole(_setting(record))
        open_.setdefault(twin[0], set()).add(twin)
        for what, leak in _headlines(record).items():
            if (low := advantage_low(leak)) is not None:
                lows.setdefault((twin, what), {}).setdefault(_trained(record), []).append(low)
    found: Strengths = {}
    for record in records:
        setting, trained = _setting(record), _trained(record)
        twins = twins_of(setting)
        if twins is None:  # of an unknown method whatever says that it is undefended
            twins = frozenset(open_.get(setting[0], ()))
        for index, leak in enumerate(record.leaks):
            if leak.channel is None:  # it read nothing
                continue
            alike = [lows.get((twin, _what(record, leak)), {}) for twin in twins]
            own = [one[trained] for one in alike if trained in one]
            told = own or [values for one in alike for values in one.values()]
            if told:
                found[record.key, index] = max(map(fmean, told))
    return found


def _headlines(record: Record) -> Mapping[What, Leak]:
    """The first leak of each attack for each goal, attribute and channel."""
    found: dict[What, Leak] = {}
    for leak in record.leaks:
        if leak.channel is not None and leak.success is not None:
            found.setdefault(_what(record, leak), leak)
    return found


def _what(record: Record, leak: Leak) -> What:
    cell = record.cell
    where = (cell.data_hash, cell.model_hash, str(cell.cut))
    return (*where, attack_id(leak.attack), leak.goal, str(leak.channel), leak.attribute or "")


def _trained(record: Record) -> str:
    cell = record.cell
    return f"{cell.limit} {cell.train!r} {cell.plant!r}"


def _setting(record: Record) -> Setting:
    defense = record.cell.defense
    return defense.name, json.dumps(defense.params, sort_keys=True)


def _whole(setting: Setting) -> Setting:
    """The same with parameters that are younger than the record, where the method is known here."""
    defense = _built(setting)
    return setting if defense is None else _of(defense)


def _twins(setting: Setting) -> frozenset[Setting] | None:
    """The settings on which attacks on this one are certified; None where its method is not known here."""
    defense = _built(setting)
    if defense is None:
        return None
    if defense.undefended:
        return frozenset({_of(defense)})
    return frozenset(_of(twin) for aim in get_args(Objective) for twin in defense.twins(aim))


def _built(setting: Setting) -> Defense | None:
    name, params = setting
    known = registry.find(name, registry.defenses())
    try:
        return known(**json.loads(params)) if known else None
    except Exception:  # whatever its validators raise
        return None


def _of(defense: Defense) -> Setting:
    return defense.name, json.dumps(defense.params, sort_keys=True)
