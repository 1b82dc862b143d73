"""Ours beside the numbers that papers print."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from bench.contracts import Goal
from leaderboards.tables.frame import Row
from leaderboards.tables.looks import look
from leaderboards.tables.parameters import counted
from leaderboards.tables.points import points


def beside(frame: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Printed points, and what was measured here at the same setting by the paper's attacks.

    Two settings are the same where task, defense and all that the paper states of its parameters
    agree; its `split` is our cut. The models differ, so the numbers need not.

    Args:
        frame: as `leaderboards.tables.frame.frame` builds it.
        known: as `leaderboards.tables.printed.printed` returns it.

    Returns:
        One row per pair: task, defense, setting, and of utility and ep the printed number and ours
        with its interval; `printed` (paper, artefact and model) and `measured` (model, seeds).
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
    for name in ("utility", "ep"):
        row[f"{name} printed"] = "" if pd.isna(theirs[name]) else f"{theirs[name]:.3f}"
        low, high = ours[f"{name}_low"], ours[f"{name}_high"]
        row[f"{name} here"] = f"{ours[name]:.3f} [{low:.3f}, {high:.3f}]"
    row["printed for"] = f"{theirs['paper']}, {theirs['artefact']}, {theirs['model']}"
    return row | {"measured on": f"{ours['model']}, {counted(ours['n_seeds'], 'seed')}"}
