"""What public text is worth to an attacker that learns from it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from leakboard.bench.contracts import Goal
from leakboard.bench.tasks import TASK_ITSELF
from leakboard.leaderboards.findings.finding import Finding, listed
from leakboard.leaderboards.tables import SETTING, Comparison, counted, interval, settings, varying

PLAIN = "eia-nn"
"""What learns nothing."""
LEARNS = {"auxiliary", "sentences"}
"""Parameters of an attack that learns from more or less public text, of one kind or another."""
Gain = tuple[float, float, float, pd.DataFrame, dict[str, Any]]
"""Points of success beyond `PLAIN`, with their interval, the rows of each seed and the parameters."""


def found(compared: Sequence[Comparison]) -> Iterator[Finding]:
    """The tokens that an attack reads beyond the nearest neighbour, by what it learned from.

    Both read the same transcript, so that they are compared seed by seed.
    """
    for comparison in compared:
        rows = comparison.rows
        rows = rows[(rows["goal"] == Goal.INVERSION) & (rows["status"] == "ok")]
        rows = rows[~rows["undefended"].astype(bool)]
        # The first row of an attack is its headline.
        rows = rows.drop_duplicates(["key", "attack", "attack_params", "attack_version", "channel"])
        plain = rows[rows["attack"] == PLAIN].drop_duplicates("key").set_index("key")["success"]
        learns = [json.loads(params or "{}").keys() >= LEARNS for params in rows["attack_params"]]
        rows = rows[pd.Series(learns, rows.index, bool) & rows["key"].isin(plain.index)]
        for _, own in rows.groupby([*SETTING, "attack"], sort=False, dropna=False):
            own = own[own["attack_version"] == own["attack_version"].max()]
            by_params = own.groupby("attack_params", sort=False)
            gains = [_gain(each, plain) for _, each in by_params if each["seed"].nunique() > 1]
            if gains:
                yield _finding(comparison, gains)


def _gain(rows: pd.DataFrame, plain: pd.Series) -> Gain:
    more = [100 * (row["success"] - plain[row["key"]]) for row in rows.to_dict("records")]
    mean = sum(more) / len(more)
    return mean, *interval(more, mean, mean), rows, json.loads(rows["attack_params"].iloc[0])


def _finding(comparison: Comparison, gains: Sequence[Gain]) -> Finding:
    ordered = sorted(
        gains, key=lambda gain: (gain[4]["auxiliary"] != TASK_ITSELF, gain[4]["sentences"])
    )
    mean, low, high, rows, _ = max(gains, key=lambda gain: gain[0])
    first = rows.iloc[0]
    others = comparison.rows["params"][comparison.rows["defense"] == first["defense"]]
    at = f"{first['defense']} {settings(first['params'], varying(others))}".replace(" = ", "=")
    said = [f"{one[0]:+.1f} [{one[1]:+.1f}, {one[2]:+.1f}] with {_told(one[4])}" for one in ordered]
    return Finding(
        rule="public-text",
        claim=f"On {comparison.task} with {comparison.model}, at {at.strip()}, {first['attack']} reads more "
        f"tokens than {PLAIN} by so many points, paired over {counted(rows['seed'].nunique(), 'seed')}: "
        f"{listed(said)}.",
        task=comparison.task,
        model=comparison.model,
        settings=(at.strip(),),
        metric=f"points of {first['metric']}",
        figure=mean,
        interval=(low, high),
        n=int(first["n"]),
        seeds=int(rows["seed"].nunique()),
        attack=first["attack"],
        keys=tuple(dict.fromkeys(key for one in gains for key in one[3]["key"])),
    )


def _told(params: dict[str, Any]) -> str:
    kind = "public sentences" if params["auxiliary"] == TASK_ITSELF else f"of {params['auxiliary']}"
    return f"{params['sentences']:,} {kind}"
