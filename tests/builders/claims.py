"""Records of a few settings, and what a rule finds in them."""

from __future__ import annotations

from records import leak, record

from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.leaderboards.findings.every import findings
from leakboard.leaderboards.tables.comparisons import comparisons

CHANCE = 0.2


def labels(success, attack="spectral", channel=Channel.ACTIVATIONS):
    return leak(success, attack, Goal.LABEL, 0.5, channel=channel)


def cells(defense, params, leaks, utilities=(0.9, 0.9), **fields):
    made = enumerate(utilities)
    return [record(defense, params, seed, utility, leaks, **fields) for seed, utility in made]


def found(rule, *records):
    every = [one for own in records for one in own]
    return [one for one in findings(comparisons(every)) if one.rule == rule]


OPEN = [leak(0.99, chance=CHANCE), labels(0.95)]
PLAIN = cells("none", {}, OPEN, undefended=True)
TWIN = cells("sap", {"eta": None}, OPEN, undefended=True)
