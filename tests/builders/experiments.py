"""Records of whole comparisons: a defense at several settings, no protection, and the untuned model."""

from __future__ import annotations

from collections.abc import Mapping

from records import leak, record

from leakboard.bench.contracts.record import Record
from leakboard.bench.contracts.threat import Goal

SETTINGS = {110.0: (0.9, 0.89), 75.0: (0.5, 0.85), 50.0: (0.2, 0.7)}
"""Of SAP: success of the attack on inputs, and utility, by the noise."""


def compared(
    settings: Mapping[float, tuple[float, float]] | None = None,
    task: str = "sst2",
    seeds: int = 3,
    labels: float | None = None,
    twin: float = 0.99,
) -> list[Record]:
    """SAP at some settings in three seeds; the numbers differ a little by the seed.

    Args:
        labels: what an attack reads of labels everywhere.
        twin: what the attack on inputs reads without protection.
    """
    made = []
    for seed in range(seeds):
        shift = seed / 500
        more = [] if labels is None else [leak(labels, "kmeans", Goal.LABEL, 0.5)]
        plain = [leak(twin), *more]
        made.append(record("none", {}, seed, 0.9 + shift, plain, task, undefended=True))
        made.append(record("sap", {"eta": None}, seed, 0.9 + shift, plain, task, undefended=True))
        made.append(record("untuned", {}, seed, 0.5, [], task))
        for eta, (success, utility) in (settings or SETTINGS).items():
            found = [leak(success + shift), leak(success / 2, "eia-learned"), *more]
            made.append(record("sap", {"eta": eta}, seed, utility + shift, found, task))
    return made
