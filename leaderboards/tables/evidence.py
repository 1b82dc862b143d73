"""What is shown about each setting against one goal: its leak, beside chance and beside no protection."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from leakboard.bench.contracts import Goal
from leakboard.bench.scoring import FLAGS, NEEDED
from leakboard.leaderboards.tables.comparisons import Comparison
from leakboard.leaderboards.tables.deciding import STRONGEST
from leakboard.leaderboards.tables.frame import Row, flags_of
from leakboard.leaderboards.tables.means import setting_of
from leakboard.leaderboards.tables.parameters import choices_of
from leakboard.leaderboards.tables.strongest import ranged, setting_named

DOUBTS = frozenset(FLAGS) - {
    "below-chance",
    "cannot-fail",
    "claim-violated",
    "not-above-untuned",
    "uncertified-attack",
}
"""Flags by which an attack that fails shows nothing."""


@dataclass(frozen=True)
class Range:
    """A mean over seeds with its 95 % interval; the interval is NaN where there is none."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return ranged(self.value, self.low, self.high)


@dataclass(frozen=True)
class Found:
    """What the strongest attack found.

    Attributes:
        success: by `metric`; guessing reaches `chance`, and who reads nothing but the untrained model
            `level`, where that is more.
        kept: what of the privacy that guessing leaves is left: 1 all of it, 0 nothing. Unlike
            success it can be compared between metrics.
        n: independent units behind it in a seed.
    """

    attack: str
    metric: str
    success: Range
    chance: float
    level: float
    kept: Range
    n: int

    @property
    def beats_guessing(self) -> bool:
        """With its whole interval, and what the untrained model tells, too."""
        return self.success.low > self.level

    def __str__(self) -> str:
        floor = f", the untrained model {self.level:.3f}" if self.level > self.chance else ""
        known = f"{self.metric}; guessing {self.chance:.3f}{floor}"
        return f"{self.attack} reaches {self.success} ({known})"


@dataclass(frozen=True)
class Evidence:
    """One setting of a defense against one goal.

    Attributes:
        setup: in words the data and the training, such as '3 epochs, 3 seeds'.
        setting: in words.
        choice: the parameters that its user chooses, as JSON.
        attribute: the private attribute, for that goal; of several the one that leaks most.
        leak: by the strongest attack that reads something.
        open: the same where nothing is protected, if that ran.
        cost: utility lost against no protection, as a share from 0 to 1.
        strength: of the attack's certificate: how clearly it works on the undefended twin; NaN
            where it met none.
        doubts: flags by which a failure of the attack shows nothing.
        keys: of the records of this setting.
    """

    task: str
    model: str
    cut: int
    setup: str
    defense: str
    params: dict[str, Any]
    setting: str
    choice: str
    goal: Goal
    attribute: str
    leak: Found
    open: Found | None
    cost: Range
    strength: float
    doubts: tuple[str, ...]
    seeds: int
    keys: tuple[str, ...]

    @property
    def certified(self) -> bool:
        """Whether the attack is shown to work: on the undefended twin, and no flag speaks against it."""
        return not self.doubts and self.strength >= NEEDED

    @property
    def helps(self) -> bool:
        """Whether clearly less leaks than without protection."""
        return self.open is not None and self.leak.kept.low > self.open.kept.high


def evidence(compared: Iterable[Comparison], goal: Goal, attack: str = STRONGEST) -> list[Evidence]:
    """One piece for each offer of a defense on one task, model and cut.

    Of what may befall an offer the worst case stands there, and of several comparisons that hold it
    the one in which most leaks, the first of equal ones: else who was attacked least would look best. Settings with their
    protection off are left out, and those whose cost is unknown.

    Args:
        attack: the one that decides, as for `leakboard.leaderboards.tables.deciding.deciding`.
    """
    offers: dict[tuple[Any, ...], list[Evidence]] = {}
    for comparison in compared:
        for one in _within(comparison, goal, attack):
            where = (one.task, one.model, one.cut, one.defense, one.choice)
            offers.setdefault(where, []).append(one)
    # Sums in another order differ in the last digits, which decide nothing.
    return [min(own, key=lambda one: round(one.leak.kept.value, 9)) for own in offers.values()]


def _within(comparison: Comparison, goal: Goal, attack: str) -> list[Evidence]:
    means, known = comparison.means(goal, attack), comparison.lost
    offers: dict[tuple[Any, ...], list[Evidence]] = {}
    for row in means:
        where = setting_of(row)
        if row["undefended"] or where not in known or pd.isna(known[where]["points"]):
            continue
        one = _evidence(
            row, known[where], comparison.words, unprotected(row, means), comparison.keys[where]
        )
        offers.setdefault((one.defense, one.choice, one.cut, row["setup"]), []).append(one)
    return [_worst(own) for own in offers.values()]


def unprotected(row: Row, means: Sequence[Row]) -> Row | None:
    """What is found of the same where nothing is protected: on `none`, else where most is."""
    alike = [
        other for other in means if other["undefended"] and other["attribute"] == row["attribute"]
    ]
    here = [other for other in alike if other["cut"] == row["cut"]] or alike
    plain = [other for other in here if other["defense"] == "none"] or here
    return min(plain, key=lambda other: other["ep"] / other["ep_level"], default=None)


def _evidence(
    row: Row, lost: Row, words: str, open_: Row | None, keys: tuple[str, ...]
) -> Evidence:
    defense, params = str(row["defense"]), str(row["params"])
    return Evidence(
        task=str(row["task"]),
        model=str(row["model"]),
        cut=int(row["cut"]),
        setup=words,
        defense=defense,
        params=json.loads(params),
        setting=setting_named(defense, str(lost["label"])),
        choice=choices_of(defense, [params])[0],
        goal=Goal(row["goal"]),
        attribute=str(row["attribute"]),
        leak=found_by(row),
        open=None if open_ is None else found_by(open_),
        cost=Range(*(float(lost[name]) / 100 for name in ("points", "low", "high"))),
        strength=float(row["certificate"]),
        doubts=tuple(flag for flag in flags_of(row) if flag in DOUBTS),
        seeds=int(row["n_seeds"]),
        keys=keys,
    )


def found_by(row: Row) -> Found:
    """What the attack of a row of means over seeds found."""
    value, low, high = (float(row[f"success{end}"]) for end in ("", "_low", "_high"))
    scale = float(row["ep_level"]) or float("nan")  # where guessing finds all, nothing is to hide
    kept = (min(1.0, max(0.0, row[f"ep{end}"] / scale)) for end in ("", "_low", "_high"))
    chance = float(row["chance"])
    return Found(
        str(row["attack"]),
        str(row["metric"]),
        Range(value, low, high),
        chance,
        max(chance, 0.0 if pd.isna(row["floor"]) else float(row["floor"])),
        Range(*kept),
        int(row["n"]),
    )


def _worst(own: Sequence[Evidence]) -> Evidence:
    """What stands for settings of which only circumstances differ, and for several attributes."""
    least = min(own, key=lambda one: one.leak.kept.value)
    cost = max((one.cost for one in own), key=lambda cost: cost.value)
    doubts = dict.fromkeys(doubt for one in own for doubt in one.doubts)
    keys = dict.fromkeys(key for one in own for key in one.keys)
    return replace(least, cost=cost, doubts=tuple(doubts), keys=tuple(keys))
