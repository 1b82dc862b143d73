"""What a setting is, and means over its seeds."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from functools import cache
from math import fsum, isnan, nan, sqrt
from typing import Any

import numpy as np
import pandas as pd

from leakboard.bench.scoring import GAINED
from leakboard.bench.tasks import CEILING
from leakboard.leaderboards.tables.frame import COLUMNS, TEXT, WHOLE, Row, flags_of, rows_of

SETTING = [
    *["task", "model", "cut", "defense", "params", "setup", "shared"],
    *["limit", "train", "copies"],
]
"""What rows have in common that differ in nothing but the seed."""
MEASURED = ["utility", "success", "ep"]
TEXTS = ["attack", "attack_params", "goal", "view", "channel", "attribute", "status", "reason"]
LEVELS = [
    *["chance", "floor", "ep_chance", "ep_level", "utility_chance"],
    *["advantage_low", "certificate"],
]
SUMMARY = [
    *TEXTS,
    "utility_metric",
    "metric",
    "flags",
    "undefended",
    *[f"{name}{end}" for name in MEASURED for end in ("", "_low", "_high")],
    *LEVELS,
    "n",
    "n_seeds",
]


def setting_of(row: Row) -> tuple[Any, ...]:
    """What tells the setting of a row from others, missing values included."""
    values = (row[name] for name in SETTING)
    return tuple(None if value is pd.NA or value != value else value for value in values)


def by_setting(rows: pd.DataFrame) -> dict[tuple[Any, ...], list[Row]]:
    """The rows of each setting, in their order."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows_of(rows):
        found.setdefault(setting_of(row), []).append(row)
    return found


def numbered(rows: pd.DataFrame, by: Sequence[str]) -> pd.Series:
    """The number of the group of each row, whose rows are alike in `by`, in order of appearance.

    To find the groups takes most of the time of whatever is done with them, and a number is found at once.
    """
    return rows.groupby(list(by), sort=False, dropna=False).ngroup()


def average(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Means of the measured columns over seeds for each group, in order of appearance.

    Texts that differ inside a group, such as the attack that was strongest, are joined by commas.
    """
    means = means_of(rows, by)
    names = [*SETTING, *SUMMARY]
    return pd.DataFrame({name: _column(name, [row[name] for row in means]) for name in names})


def means_of(rows: pd.DataFrame, by: Sequence[str]) -> list[Row]:
    """The rows of `average`."""
    groups: dict[int, list[Row]] = {}
    told = [*SETTING, *(name for name in SUMMARY if name != "n_seeds"), "key"]
    for number, row in zip(numbered(rows, by), rows_of(rows[told]), strict=True):
        groups.setdefault(number, []).append(row)
    return [_mean(group) for group in groups.values()]


def _column(name: str, values: Sequence[Any]) -> Any:
    """Values as the column of a frame; one by one, since a table of them is changed in much more time."""
    kind: Any = COLUMNS.get(name)
    if kind in (TEXT, WHOLE):
        return pd.array(values, dtype=kind)
    return values if kind is None else np.array(values, dtype=kind)


def distinct(texts: pd.Series) -> str:
    """The different texts of a column of means, in order, joined by commas."""
    return ", ".join(dict.fromkeys(part for text in texts for part in text.split(", ") if part))


def interval(values: Collection[float], low: float, high: float) -> tuple[float, float]:
    """95 % interval of a mean over seeds: Student's t, or the one given where there is one seed."""
    n = len(values)
    if n < 2:
        return low, high
    # Of three numbers and millions of times: numpy would take most of it to begin.
    mean = fsum(values) / n
    half = _quantile(n - 1) * sqrt(fsum((value - mean) ** 2 for value in values) / (n - 1) / n)
    return mean - half, mean + half


@cache
def _quantile(freedom: int) -> float:
    """Of Student's t: what is larger in one case of forty."""
    from scipy.special import stdtrit  # longer to load than a figure takes to draw

    return float(stdtrit(freedom, 0.975))


def _range(name: str, values: Sequence[float], row: Mapping[Hashable, Any]) -> tuple[float, float]:
    """The least and the largest value that a measure can take; both below 0 and above 1 where it was there."""
    if row["metric"] == GAINED and name != "utility":  # it may as well be lost
        return (-CEILING, CEILING) if name == "success" else (0.0, 2.0)
    most = 1.0
    if name == "success" and row["ep"] < 1:
        most = row["success"] / (1 - row["ep"])  # EP is 1 − success / ceiling
    return min([0.0, *values]), max([most, *values])


def _within(value: float, least: float, most: float) -> float:
    return value if isnan(value) else min(max(value, least), most)


def _mean(rows: Sequence[Row]) -> Row:
    # The same cell may stand in two folders of results; it is one observation.
    seeds = list({row["key"]: row for row in reversed(rows)}.values())[::-1]
    first = seeds[0]
    row: dict[Hashable, Any] = {name: first[name] for name in SETTING}
    for name in [*TEXTS, "utility_metric", "metric"]:
        row[name] = ", ".join(dict.fromkeys(seed[name] for seed in seeds if seed[name]))
    flags = [flag for seed in seeds for flag in flags_of(seed)]
    row["flags"] = ",".join(dict.fromkeys(flags))
    row["undefended"] = all(seed["undefended"] for seed in seeds)
    for name in reversed(MEASURED):  # EP tells the range of success
        known = [seed for seed in seeds if not isnan(seed[name])]
        values = [float(seed[name]) for seed in known]
        row[name] = fsum(values) / len(values) if known else nan
        ends = known[0] if known else first
        low, high = interval(values, ends[f"{name}_low"], ends[f"{name}_high"])
        # Student's t knows no bounds; what is measured has some.
        least, most = _range(name, values, row)
        row[f"{name}_low"], row[f"{name}_high"] = (
            _within(low, least, most),
            _within(high, least, most),
        )
    # Of lower ends and of certificates the mean is one, too: what they say holds on the mean.
    for name in LEVELS:
        told = [float(seed[name]) for seed in seeds if not isnan(seed[name])]
        row[name] = fsum(told) / len(told) if told else nan
    row["n"] = min((seed["n"] for seed in seeds if not pd.isna(seed["n"])), default=pd.NA)
    row["n_seeds"] = len(seeds)
    return row
