"""Means over seeds, and the envelope of what no other point improves on in both directions."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import t as student

from leaderboards.frame import COLUMNS
from leaderboards.looks import knob, setting

SETTING = ["task", "model", "cut", "defense", "params", "setup", "limit", "epochs"]
"""What rows have in common that differ in nothing but the seed."""
MEASURED = ["utility", "success", "ep"]
TEXTS = ["attack", "attack_params", "goal", "view", "channel", "attribute", "status", "reason"]
SUMMARY = [
    *TEXTS,
    "utility_metric",
    "metric",
    "flags",
    "undefended",
    *[f"{name}{end}" for name in MEASURED for end in ("", "_low", "_high")],
    "chance",
    "n_seeds",
]


def points(frame: pd.DataFrame, goal: str, attack: str | None = None) -> pd.DataFrame:
    """Utility and empirical privacy of every setting, as means over its seeds.

    Args:
        frame: as `leaderboards.frame.frame` builds it.
        goal: what the attacks guess, such as 'inversion'.
        attack: the attack that decides; by default the strongest one in each cell, which is the
            one with the lowest EP among those that read something. The first row of an attack in a record is its headline.

    Returns:
        One row per setting that has an ok result, with the columns of `SETTING`; the means
        `utility`, `success` and `ep` with `_low` and `_high` (95 %: Student's t over the seeds,
        with one seed the interval inside the cell), `chance`, `n_seeds`; the `attack` that
        decided, its `view` and `attribute`; `knob`, `knob_value` and `label`.
    """
    rows = frame[(frame["goal"] == goal) & (frame["status"] == "ok")].dropna(subset=["ep"])
    # What reads nothing is no attack: a cell that only it applies to has not shown any privacy.
    rows = rows[rows["channel"] != ""] if attack is None else rows[rows["attack"] == attack]
    # A record keeps results of older versions of an attack; only the newest one speaks.
    method = ["key", "attack", "attack_params"]
    newest = rows.groupby(method)["attack_version"].transform("max")
    headline = rows[rows["attack_version"] == newest].drop_duplicates(method)
    strongest = headline.sort_values("ep", kind="stable").drop_duplicates("key").sort_index()
    return _labelled(average(strongest, SETTING)).assign(goal=goal)


def average(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Means of the measured columns over seeds for each group, in order of appearance.

    Texts that differ inside a group, such as the attack that was strongest, are joined by commas.
    """
    found = [_mean(group) for _, group in rows.groupby(list(by), sort=False, dropna=False)]
    means = pd.DataFrame(found, columns=[*SETTING, *SUMMARY])
    return means.astype({name: kind for name, kind in COLUMNS.items() if name in means})


def interval(values: np.ndarray, low: float, high: float) -> tuple[float, float]:
    """95 % interval of a mean over seeds: Student's t, or the one given where there is one seed."""
    n = len(values)
    if n < 2:
        return low, high
    half = float(student.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n))
    return float(np.mean(values)) - half, float(np.mean(values)) + half


def pareto(points: pd.DataFrame) -> pd.DataFrame:
    """The points of each task to which no other has both higher utility and higher EP.

    Ties stay. Points that lack one of the two numbers are on no envelope. The order is kept.
    """
    whole = points.dropna(subset=["utility", "ep"])
    numbered = whole.reset_index(drop=True)
    kept = [n for _, panel in numbered.groupby("task") for n in _undominated(panel)]
    return whole.iloc[sorted(kept)]


def _undominated(panel: pd.DataFrame) -> list[int]:
    """Walks down in utility; a point must reach the best EP among those of higher utility."""
    kept: list[int] = []
    best = -np.inf
    for _, level in sorted(panel.groupby("utility"), reverse=True):
        kept += list(level.index[level["ep"] >= best])
        best = max(best, level["ep"].max())
    return kept


def _mean(group: pd.DataFrame) -> dict[str, object]:
    # The same cell may stand in two folders of results; it is one observation.
    seeds = group.drop_duplicates("key")
    first = seeds.iloc[0]
    row: dict[str, object] = {name: first[name] for name in SETTING}
    for name in [*TEXTS, "utility_metric", "metric"]:
        row[name] = ", ".join(dict.fromkeys(text for text in seeds[name] if text))
    flags = [flag for text in seeds["flags"] for flag in text.split(",") if flag]
    row["flags"] = ",".join(dict.fromkeys(flags))
    row["undefended"] = bool(seeds["undefended"].all())
    for name in MEASURED:
        known = seeds.dropna(subset=[name])
        values = known[name].to_numpy(float)
        row[name] = float(values.mean()) if len(values) else np.nan
        ends = known.iloc[0] if len(values) else first
        row[f"{name}_low"], row[f"{name}_high"] = interval(
            values, ends[f"{name}_low"], ends[f"{name}_high"]
        )
    row["chance"] = float(seeds["chance"].mean())
    row["n_seeds"] = len(seeds)
    return row


def _labelled(means: pd.DataFrame) -> pd.DataFrame:
    knobs = {
        defense: knob(str(defense), rows["params"]) for defense, rows in means.groupby("defense")
    }
    names = [knobs[defense] for defense in means["defense"]]
    values = [
        json.loads(params).get(name) for name, params in zip(names, means["params"], strict=True)
    ]
    numbers = [float(v) if isinstance(v, int | float) else np.nan for v in values]
    labels = [
        defense if name is None else setting(name, value)
        for defense, name, value in zip(means["defense"], names, values, strict=True)
    ]
    return means.assign(
        knob=pd.Series([name or "" for name in names], index=means.index, dtype="str"),
        knob_value=pd.Series(numbers, index=means.index, dtype="float64"),
        label=pd.Series(labels, index=means.index, dtype="str"),
    )
