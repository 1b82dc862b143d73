"""What is read of the text that a language model is tuned on, whatever is done to its input."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from leakboard.bench.contracts import Channel, Goal
from leakboard.leaderboards.findings.finding import Finding, keys_of, listed, measured
from leakboard.leaderboards.tables import (
    SETTING,
    Comparison,
    Row,
    counted,
    means_of,
    ranged,
    setting_of,
)

READS, BESIDE = "token-gradient", "eia-nn"
"""Reads labels, which are the text; reads the input, which is what a defense makes of it."""
HOLDER = re.compile(", (head at customer|private head)")
"""What the input has nothing to do with."""


def found(compared: Sequence[Comparison]) -> Iterator[Finding]:
    """For each defense and holder of the output layer the setting at which least of the text is read.

    Where most is read comes first. Only where that is clearly more than guessing, at every setting; a success needs no certificate. What is
    read of the input stands beside it.
    """
    for comparison in compared:
        groups: dict[tuple[str, str], list[Row]] = {}
        for row in _means(comparison, READS, Goal.LABEL):
            groups.setdefault((str(row["defense"]), str(row["channel"])), []).append(row)
        inputs = {setting_of(row): row for row in _means(comparison, BESIDE, Goal.INVERSION)}
        for own in sorted(groups.values(), key=_least, reverse=True):
            protected = any(not row["undefended"] for row in own)
            if protected and all(row["success_low"] > row["chance"] for row in own):
                yield _finding(comparison, own, [inputs.get(setting_of(row)) for row in own])


def _least(rows: Sequence[Row]) -> float:
    return min(float(row["success_low"]) for row in rows)


def _means(comparison: Comparison, attack: str, goal: Goal) -> Sequence[Row]:
    rows = comparison.rows
    rows = rows[(rows["attack"] == attack) & (rows["goal"] == goal) & (rows["view"] == "train")]
    return means_of(rows[rows["status"] == "ok"], SETTING)


def _finding(comparison: Comparison, own: Sequence[Row], beside: Sequence[Row | None]) -> Finding:
    least = min(own, key=lambda row: row["success"])
    holder = "vendor" if least["channel"] == Channel.LOGIT_GRADIENTS else "customer"
    labels = [str(comparison.lost[setting_of(row)]["label"]) for row in own]
    inputs = [
        f"{row['success']:.3f} at {HOLDER.sub('', label)}"
        for row, label in zip(beside, labels, strict=True)
        if row is not None
    ]
    told = ranged(least["success"], least["success_low"], least["success_high"])
    every = f"each of {counted(len(own), 'setting')}" if len(own) > 1 else "its one setting"
    return Finding(
        rule="text",
        claim=f"On {comparison.task} with {comparison.model}, output layer at the {holder}, {least['defense']} gives "
        f"away the text, which is its own labels, at {every}: {READS} reads at least {told} of it "
        f"(guessing {least['chance']:.3f})"
        + (f", {BESIDE} of the input {listed([*dict.fromkeys(inputs)])}." if inputs else "."),
        settings=tuple(f"{least['defense']} {label}".replace(" = ", "=") for label in labels),
        **measured(comparison, least),
        keys=tuple(dict.fromkeys(key for row in own for key in keys_of(comparison, row))),
    )
