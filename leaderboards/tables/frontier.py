"""Means over seeds, the attack that decides, and the envelope of points that nothing improves on."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bench.contracts import LeakboardError, did_you_mean
from leaderboards.tables.frame import COLUMNS
from leaderboards.tables.looks import knob, look, setting

SETTING = ["task", "model", "cut", "defense", "params", "setup", "limit", "epochs"]
"""What rows have in common that differ in nothing but the seed."""
PAPER, STRONGEST = "paper", "strongest"
"""What may decide, besides an attack by its name."""
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
    "ep_chance",
    "utility_chance",
    "n_seeds",
]


def points(frame: pd.DataFrame, goal: str, attack: str = STRONGEST) -> pd.DataFrame:
    """Utility and empirical privacy of every setting, as means over its seeds.

    Args:
        frame: as `leaderboards.tables.frame.frame` builds it.
        goal: what the attacks guess, such as 'inversion'.
        attack: the attack that decides, as for `deciding`.

    Returns:
        One row per setting that has an ok result, and per attribute, with the columns of
        `SETTING`; the means `utility`, `success` and `ep` with `_low` and `_high` (95 %: Student's
        t over the seeds, with one seed the interval inside the cell), `chance`, `n_seeds`; the
        `attack` that decided, its `view` and `attribute`; `knob`, `knob_value` and `label`.

    Raises:
        LeakboardError: no attack of that name has a row.
    """
    rows = deciding(frame[frame["goal"] == goal], attack)
    return labelled(average(rows, [*SETTING, "attribute"])).assign(goal=goal)


def deciding(
    frame: pd.DataFrame, attack: str = STRONGEST, apart: Sequence[str] = ()
) -> pd.DataFrame:
    """The rows of the one attack that decides in each setting, for each goal and attribute.

    The strongest has the largest advantage over chance on the mean over the seeds on which it ran:
    EPs of attacks whose chance levels differ cannot be compared. To take the strongest of each seed
    would pick what luck favours there, and so understate EP. One that ran on fewer seeds competes
    with the mean of those: what leaks there leaks, and `n_seeds` says how often it was seen.

    Args:
        attack: 'strongest' among those that read something; 'paper', the one by which the
            defense's authors measure it, or the strongest where a defense has no authors, as
            `none`; or a name. Where it ran with several parameters or on
            several channels, the strongest of them.
        apart: columns that tell settings apart in addition.

    Raises:
        LeakboardError: no attack of that name has a row.
    """
    # A record keeps results of older versions of an attack; only the newest one speaks.
    method = ["key", "attack", "attack_params"]
    rows = frame[frame["status"] == "ok"].dropna(subset=["ep"])
    newest = rows.groupby(method)["attack_version"].transform("max")
    rows = rows[rows["attack_version"] == newest]
    # Its first row is an attack's headline, for each attribute and channel.
    rows = rows.drop_duplicates([*method, "goal", "attribute", "channel"])
    if attack == PAPER:
        told = rows[["defense", "goal", "attack", "channel"]]
        theirs = [_is_papers(row) for row in told.to_dict("records")]
        rows = rows[np.array(theirs, dtype=bool)]
    elif attack == STRONGEST:
        # What reads nothing is no attack: where only it applies, no privacy has been shown.
        rows = rows[rows["channel"] != ""]
    elif attack not in set(frame["attack"]):
        known = [PAPER, STRONGEST, *sorted(set(frame["attack"]) - {""})]
        raise LeakboardError(f"no result of an attack '{attack}'. {did_you_mean(attack, known)}")
    else:
        rows = rows[rows["attack"] == attack]
    setting, choice = [*SETTING, *apart, "goal", "attribute"], [*method[1:], "channel"]
    means = rows.groupby([*setting, *choice], sort=False, dropna=False)["advantage"]
    ranked = rows.assign(mean=means.transform("mean"))
    ranked = ranked.sort_values("mean", ascending=False, kind="stable")
    first = ranked.groupby(setting, sort=False, dropna=False)[choice].transform("first")
    kept = (ranked[choice] == first).all(axis=1)
    return ranked[kept].drop(columns="mean").sort_index()


def _is_papers(row: Mapping[Hashable, Any]) -> bool:
    known = look(row["defense"])
    if not known.measured_by:
        return bool(row["channel"] != "")
    on_theirs = not known.measured_on or row["channel"] in known.measured_on
    return on_theirs and row["attack"] in known.measured_by.get(row["goal"], ())


def average(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Means of the measured columns over seeds for each group, in order of appearance.

    Texts that differ inside a group, such as the attack that was strongest, are joined by commas.
    """
    groups: dict[int, list[Mapping[Hashable, Any]]] = {}
    numbers = rows.groupby(list(by), sort=False, dropna=False).ngroup()
    told = rows[[*SETTING, *(name for name in SUMMARY if name != "n_seeds"), "key"]]
    for number, row in zip(numbers, told.to_dict("records"), strict=True):
        groups.setdefault(number, []).append(row)
    found = [_mean(group) for group in groups.values()]
    means = pd.DataFrame(found, columns=[*SETTING, *SUMMARY])
    return means.astype({name: kind for name, kind in COLUMNS.items() if name in means})


def interval(values: np.ndarray, low: float, high: float) -> tuple[float, float]:
    """95 % interval of a mean over seeds: Student's t, or the one given where there is one seed."""
    n = len(values)
    if n < 2:
        return low, high
    from scipy.special import stdtrit  # longer to load than a figure takes to draw

    half = float(stdtrit(n - 1, 0.975) * np.std(values, ddof=1) / np.sqrt(n))
    return float(np.mean(values)) - half, float(np.mean(values)) + half


def pareto(points: pd.DataFrame) -> pd.DataFrame:
    """The points of each task and attribute to which no other has both higher utility and EP.

    Ties stay. Points that lack one of the two numbers are on no envelope. The order is kept.
    """
    whole = points.dropna(subset=["utility", "ep"])
    numbered = whole.reset_index(drop=True)
    kept = [n for _, panel in numbered.groupby(["task", "attribute"]) for n in _undominated(panel)]
    return whole.iloc[sorted(kept)]


def _undominated(panel: pd.DataFrame) -> list[int]:
    """Walks down in utility; a point must reach the best EP among those of higher utility."""
    kept: list[int] = []
    best = -np.inf
    for _, level in sorted(panel.groupby("utility"), reverse=True):
        kept += list(level.index[level["ep"] >= best])
        best = max(best, level["ep"].max())
    return kept


def _mean(rows: Sequence[Mapping[Hashable, Any]]) -> dict[str, object]:
    # The same cell may stand in two folders of results; it is one observation.
    seeds = list({row["key"]: row for row in reversed(rows)}.values())[::-1]
    first = seeds[0]
    row: dict[str, object] = {name: first[name] for name in SETTING}
    for name in [*TEXTS, "utility_metric", "metric"]:
        row[name] = ", ".join(dict.fromkeys(seed[name] for seed in seeds if seed[name]))
    flags = [flag for seed in seeds for flag in seed["flags"].split(",") if flag]
    row["flags"] = ",".join(dict.fromkeys(flags))
    row["undefended"] = all(seed["undefended"] for seed in seeds)
    for name in MEASURED:
        known = [seed for seed in seeds if not np.isnan(seed[name])]
        values = np.array([seed[name] for seed in known])
        row[name] = float(values.mean()) if known else np.nan
        ends = known[0] if known else first
        row[f"{name}_low"], row[f"{name}_high"] = interval(
            values, ends[f"{name}_low"], ends[f"{name}_high"]
        )
    for name in ("chance", "ep_chance", "utility_chance"):
        told = [seed[name] for seed in seeds if not np.isnan(seed[name])]
        row[name] = float(np.mean(told)) if told else np.nan
    row["n_seeds"] = len(seeds)
    return row


def labelled(means: pd.DataFrame) -> pd.DataFrame:
    """Adds the knob of each setting, its value, and how a figure names the point."""
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
