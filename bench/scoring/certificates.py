"""Certificates: how well an attack works on the undefended twin of a defense. They are derived, never stored.

The failure of an attack is evidence of privacy only if the same attack works on the undefended twin. A successful
attack needs no certificate.
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
"""Minimum strength of a certificate."""
UNSEEN = math.log2(40)
"""Bits of exposure that an unseen secret exceeds with probability 1/40."""

Strengths = dict[tuple[str, int], float]
Setting = tuple[str, str]
"""A defense and its parameters as JSON, without its version."""
Target = tuple[str, ...]
"""Goal, attribute, channel and data for which a certificate is valid."""


def advantage_low(leak: Leak) -> float | None:
    """Lower end of the 95 % interval of (success − level) / (ceiling − level).

    The level is chance, or the floor if that is higher, since what an attack reads from the untrained model is no
    evidence about a defense. A single canary has no interval; instead, an unseen secret exceeds b bits with
    probability 2^−b.
    """
    success, level = leak.success, leak.level
    if success is None or level is None or level >= leak.ceiling:
        return None
    low = success.low
    if leak.metric.startswith("exposure") and success.n == 1:
        low = success.value - UNSEEN + success.chance
    return (low - level) / (leak.ceiling - level)


def strengths(records: Sequence[Record]) -> Strengths:
    """Strength of the certificate of each leak, by record key and index of the leak.

    It is the mean of `advantage_low` over the seeds of the twin, for the same attack, goal, attribute and channel,
    on the same data, model and cut. Twins with equal training settings are preferred; otherwise those on which the
    attack works best are used. Leaks whose twin was not attacked are absent. An undefended cell is its own twin.
    """
    # Caches of this call only, since methods may be registered later.
    with_defaults, twins_of = cache(_with_defaults), cache(twin_settings)
    lows: dict[tuple[Setting, Target], dict[str, list[float]]] = {}
    undefended: dict[str, set[Setting]] = {}
    for record in records:
        if record.cell.shadow is not None or not record.undefended:
            continue
        twin = with_defaults(_setting(record))
        undefended.setdefault(twin[0], set()).add(twin)
        for target, leak in _headlines(record).items():
            if (low := advantage_low(leak)) is not None:
                lows.setdefault((twin, target), {}).setdefault(_trained(record), []).append(low)
    result: Strengths = {}
    for record in records:
        setting, trained = _setting(record), _trained(record)
        twins = twins_of(setting)
        if twins is None:  # an unknown method: all its records that state that they are undefended
            twins = frozenset(undefended.get(setting[0], ()))
        for index, leak in enumerate(record.leaks):
            if leak.channel is None:  # it read nothing
                continue
            seeds = [lows.get((twin, _target(record, leak)), {}) for twin in twins]
            same_training = [one[trained] for one in seeds if trained in one]
            candidates = same_training or [values for one in seeds for values in one.values()]
            if candidates:
                result[record.key, index] = max(map(fmean, candidates))
    return result


def _headlines(record: Record) -> Mapping[Target, Leak]:
    """The first leak of each attack for each goal, attribute and channel."""
    leaks: dict[Target, Leak] = {}
    for leak in record.leaks:
        if leak.channel is not None and leak.success is not None:
            leaks.setdefault(_target(record, leak), leak)
    return leaks


def _target(record: Record, leak: Leak) -> Target:
    cell = record.cell
    where = (cell.data_hash, cell.model_hash, str(cell.cut))
    return (*where, attack_id(leak.attack), leak.goal, str(leak.channel), leak.attribute or "")


def _trained(record: Record) -> str:
    cell = record.cell
    return f"{cell.limit} {cell.train!r} {cell.plant!r}"


def _setting(record: Record) -> Setting:
    defense = record.cell.defense
    return defense.name, json.dumps(defense.params, sort_keys=True)


def _with_defaults(setting: Setting) -> Setting:
    """The setting with defaults for parameters that are newer than the record, if the method is installed."""
    defense = _build(setting)
    return setting if defense is None else _setting_of(defense)


def twin_settings(setting: Setting) -> frozenset[Setting] | None:
    """Defenses and parameters with the protection of a setting off; None if its method is not installed."""
    defense = _build(setting)
    if defense is None:
        return None
    if defense.undefended:
        return frozenset({_setting_of(defense)})
    return frozenset(
        _setting_of(twin) for aim in get_args(Objective) for twin in defense.twins(aim)
    )


def _build(setting: Setting) -> Defense | None:
    name, params = setting
    method = registry.find(name, registry.defenses())
    try:
        return method(**json.loads(params)) if method else None
    except Exception:  # validators may raise anything
        return None


def _setting_of(defense: Defense) -> Setting:
    return defense.name, json.dumps(defense.params, sort_keys=True)
