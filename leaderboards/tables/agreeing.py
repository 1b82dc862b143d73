"""Whether the shape of what was measured here is that of what a paper prints, in words."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import pandas as pd

from leakboard.leaderboards.tables.beside import NAMES, Laid
from leakboard.leaderboards.tables.frame import Row, rows_of
from leakboard.leaderboards.tables.intervals import count

AGREE, DIFFER = "the shapes agree", "the shapes differ"
NOT_TOLD = "not told: intervals overlap"
ALONE = "not told: no two settings to compare"
NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Shape:
    """Ours beside one measure of a printed table on one task.

    Attributes:
        settings: how many have both numbers.
        told: how far ours lie from what is printed, and in which order; '' where nothing was measured.
        verdict: what that says.
    """

    task: str
    measure: str
    settings: int
    told: str
    verdict: str

    def __str__(self) -> str:
        told = f"{self.told}: " if self.told else ""
        return f"{self.task}, {self.measure}: {told}{self.verdict}."


def shapes(laid: Laid) -> list[Shape]:
    """For each task and measure of a printed table whether settings stand in its order.

    Settings are compared with each other only where they were trained and measured on the same data.
    """
    return [
        _shape(own.dropna(subset=[f"{name}_printed"]), str(task), name)
        for task, own in laid.pairs.groupby("task", sort=False)
        for name in laid.measures
        if own[f"{name}_printed"].notna().any()
    ]


def _shape(own: pd.DataFrame, task: str, name: str) -> Shape:
    """Of the settings for which the paper prints the measure."""
    both = own.dropna(subset=[name])
    if both.empty:
        return Shape(task, NAMES[name], 0, "", NOT_MEASURED)
    apart = both[name] - both[f"{name}_printed"]
    between = (
        f"{apart.min():+.3f} to {apart.max():+.3f}" if len(both) > 1 else f"{apart.iloc[0]:+.3f}"
    )
    told = f"ours less printed is {between} at {count(len(both), 'setting')}"
    rows = rows_of(both)
    pairs = [
        (a, b) if a[f"{name}_printed"] > b[f"{name}_printed"] else (b, a)
        for a, b in combinations(rows, 2)
        if a[f"{name}_printed"] != b[f"{name}_printed"] and _comparable(a, b)
    ]
    if not pairs:
        return Shape(task, NAMES[name], len(both), told, ALONE)
    # The one that the paper prints as the larger stands first.
    same = sum(a[name] > b[name] for a, b in pairs)
    surely = sum(a[f"{name}_low"] > b[f"{name}_high"] for a, b in pairs)
    turned = sum(a[name] < b[name] for a, b in pairs)
    clearly = sum(a[f"{name}_high"] < b[f"{name}_low"] for a, b in pairs)
    told = (
        f"{told}; of {count(len(pairs), 'pair')} of settings {same} in the printed order ({surely} with "
        f"intervals apart) and {turned} in the other ({clearly} with intervals apart)"
    )
    return Shape(task, NAMES[name], len(both), told, verdict(surely, clearly))


def verdict(surely: int, clearly: int) -> str:
    """In words, of the pairs with intervals apart that stand in the printed order, and in the other."""
    if clearly:
        return DIFFER
    return AGREE if surely else NOT_TOLD


def _comparable(a: Row, b: Row) -> bool:
    return bool(a["here"].row["shared"] == b["here"].row["shared"])
