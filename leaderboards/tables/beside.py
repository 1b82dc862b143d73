"""Ours beside the numbers that papers print: cell by cell, how far apart, and in which order."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import pandas as pd

from bench.contracts import Goal
from leaderboards.tables.frame import Row
from leaderboards.tables.looks import look
from leaderboards.tables.parameters import counted
from leaderboards.tables.points import points
from leaderboards.tables.strongest import number, ranged

MEASURES = ("utility", "ep")


def beside(frame: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Printed points, and what was measured here at the same setting by the paper's attacks.

    Two settings are the same where task, defense and all that the paper states of its parameters
    agree; its `split` is our cut. The models differ, so the numbers need not.

    Args:
        frame: as `leaderboards.tables.frame.frame` builds it.
        known: as `leaderboards.tables.printed.printed` returns it.

    Returns:
        One row per pair: task, goal, defense, setting (in words); `utility`, `ep`, each with `_low`,
        `_high` and `_printed`, NaN where the paper prints none; `printed for` (paper, artefact and
        model) and `measured on` (model, seeds).
    """
    found = []
    for goal, printed in known.groupby("goal"):
        ours = points(_by_authors(frame, printed, str(goal)), str(goal)).to_dict("records")
        for theirs in printed.to_dict("records"):
            same = [row for row in ours if _same(row, theirs)]
            found += [_pair(row, theirs) for row in same]
    return pd.DataFrame(found)


def _by_authors(frame: pd.DataFrame, printed: pd.DataFrame, goal: str) -> pd.DataFrame:
    """The rows of the attacks by which the paper measures its own defenses, baselines included."""
    authors = [look(str(name)) for name in printed["defense"].unique()]
    authors = [own for own in authors if own.measured_by.get(Goal(goal))]
    names = {name for own in authors for name in own.measured_by[Goal(goal)]}
    channels = {channel for own in authors for channel in own.measured_on}
    rows = frame[frame["attack"].isin(names)]
    return rows[rows["channel"].isin(channels)] if channels else rows


def _same(ours: Row, theirs: Row) -> bool:
    if (ours["task"], ours["defense"]) != (theirs["task"], theirs["defense"]):
        return False
    stated, params = json.loads(theirs["params"]), json.loads(ours["params"])
    params["split"] = ours["cut"]
    return all(name in params and params[name] == value for name, value in stated.items())


def _pair(ours: Row, theirs: Row) -> dict[str, Any]:
    stated = json.loads(theirs["params"])
    # The knob, and the cut where the paper moves it.
    label = ours["label"] + (f", cut {ours['cut']}" if "split" in stated else "")
    row = {"task": ours["task"], "goal": theirs["goal"], "defense": ours["defense"]}
    row["setting"] = "" if label == ours["defense"] else label
    for name in MEASURES:
        row[f"{name}_printed"] = theirs[name]
        row |= {f"{name}{end}": ours[f"{name}{end}"] for end in ("", "_low", "_high")}
    row["printed for"] = f"{theirs['paper']}, {theirs['artefact']}, {theirs['model']}"
    return row | {"measured on": f"{ours['model']}, {counted(ours['n_seeds'], 'seed')}"}


def worded(pairs: pd.DataFrame) -> pd.DataFrame:
    """The rows of `beside` as a table for people: what is printed, ours with its interval, and ours less printed."""
    table = pairs[["task", "goal", "defense", "setting"]].copy()
    for name in MEASURES:
        printed, ours = pairs[f"{name}_printed"], pairs[name]
        ends = zip(ours, pairs[f"{name}_low"], pairs[f"{name}_high"], strict=True)
        table[f"{name} printed"] = ["" if pd.isna(value) else number(value) for value in printed]
        table[f"{name} here"] = [ranged(*three) for three in ends]
        table[f"{name} apart"] = ["" if pd.isna(v) else f"{v:+.3f}" for v in ours - printed]
    return table.join(pairs[["printed for", "measured on"]])


def shapes(pairs: pd.DataFrame) -> list[str]:
    """For each printed table, task and measure: how far ours lie from it, and whether settings stand in its order."""
    found = []
    for (about, task, goal), own in pairs.groupby(["printed for", "task", "goal"], sort=False):
        for name in MEASURES:
            both = own.dropna(subset=[name, f"{name}_printed"])
            if len(both):
                what = (
                    f"{task}, {'utility' if name == 'utility' else f'EP against {goal}'} ({about})"
                )
                found.append(f"{what}: {_shape(both, name)}")
    return found


def _shape(both: pd.DataFrame, name: str) -> str:
    """One sentence on the settings of which both numbers are known."""
    apart = both[name] - both[f"{name}_printed"]
    between = (
        f"{apart.min():+.3f} to {apart.max():+.3f}" if len(both) > 1 else f"{apart.iloc[0]:+.3f}"
    )
    told = f"ours less printed is {between} at {counted(len(both), 'setting')}"
    rows = both.to_dict("records")
    pairs = [
        (a, b) for a, b in combinations(rows, 2) if a[f"{name}_printed"] != b[f"{name}_printed"]
    ]
    if not pairs:
        return told
    # The one that the paper prints as the larger stands first.
    ordered = [(a, b) if a[f"{name}_printed"] > b[f"{name}_printed"] else (b, a) for a, b in pairs]
    turned = [(a, b) for a, b in ordered if a[name] < b[name]]
    clearly = sum(a[f"{name}_high"] < b[f"{name}_low"] for a, b in turned)
    same = sum(a[name] > b[name] for a, b in ordered)
    surely = sum(a[f"{name}_low"] > b[f"{name}_high"] for a, b in ordered)
    return (
        f"{told}; of {counted(len(pairs), 'pair')} of settings {same} stand in the printed order ({surely} with "
        f"intervals apart) and {len(turned)} in the other ({clearly} with intervals apart)"
    )
