"""What was measured here in the quantities that papers print, setting by setting."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import pandas as pd

from leakboard.bench.contracts import Channel, Goal, Record
from leakboard.bench.tasks import copies_of
from leakboard.leaderboards.tables.deciding import deciding
from leakboard.leaderboards.tables.frame import Row, rows_of
from leakboard.leaderboards.tables.means import SETTING, average, interval, setting_of
from leakboard.leaderboards.tables.points import points
from leakboard.leaderboards.tables.styles import style_of

PERPLEXITY = "perplexity per token"
"""The measure of a record that papers print."""
Ends = tuple[float, float, float]
"""A mean over seeds and its 95 % interval."""
NOTHING: Ends = (nan, nan, nan)


@dataclass(frozen=True)
class Here:
    """A setting that was measured here.

    Attributes:
        stated: its parameters, with its cut as `split` and how often canaries were planted as `copies`.
        means: by measure, where it was measured.
        by_seed: utility and EP of each seed.
        keys: of its records.
    """

    row: Row
    stated: Mapping[str, Any]
    means: Mapping[str, Ends]
    by_seed: Mapping[str, Mapping[int, float]]
    keys: frozenset[str]

    @property
    def seeds(self) -> int:
        """How many it ran with."""
        return len(self.by_seed["utility"])

    @property
    def examples(self) -> float:
        """Of each split, at most."""
        return float("inf") if pd.isna(self.row["limit"]) else float(self.row["limit"])


def settings_here(
    frame: pd.DataFrame, records: Sequence[Record], known: pd.DataFrame
) -> list[Here]:
    """The settings of the tasks and defenses of a printed table, each with what was measured of it.

    EP is that under the attacks by which the paper measures its own defenses, baselines included. Trials,
    which nothing attacks, are left out.

    Args:
        frame: of the records, as `leakboard.leaderboards.tables.frame.frame` builds it.
        known: as `leakboard.leaderboards.tables.printed.printed` returns it.
    """
    about = frame["task"].isin(known["task"]) & frame["defense"].isin(known["defense"])
    rows = frame[about & (frame["status"] == "ok") & (frame["attack"] != "")]
    cells = rows.drop_duplicates("key").dropna(subset=["utility"])
    goal = str(known["goal"].iloc[0])
    theirs = _by_authors(rows[rows["goal"] == goal], known, goal)
    exposed = rows[rows["metric"] == "exposure"]
    exposed = exposed[[copies_of(view) > 0 for view in exposed["view"]]]
    read = rows[(rows["attack"] == "xgboost") & (rows["channel"] == Channel.GRADIENTS)]
    found: dict[str, dict[tuple[Any, ...], Ends]] = {
        "utility": _means(average(cells, SETTING), "utility"),
        "ep": _means(points(theirs, goal), "ep") if len(theirs) else {},
        "exposure": _successes(exposed),
        "perplexity": _perplexities(cells, records),
        "gradients": _successes(read),
    }
    by_seed = {"utility": _by_seed(cells, "utility"), "ep": _by_seed(deciding(theirs), "ep")}
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows_of(cells):
        groups.setdefault(setting_of(row), []).append(row)
    return [
        Here(
            row=same[0],
            stated=_stated(same[0]),
            means={name: ends[where] for name, ends in found.items() if where in ends},
            by_seed={name: values.get(where, {}) for name, values in by_seed.items()},
            keys=frozenset(row["key"] for row in same),
        )
        for where, same in groups.items()
    ]


def _by_authors(rows: pd.DataFrame, known: pd.DataFrame, goal: str) -> pd.DataFrame:
    """The rows of the attacks by which the paper measures its own defenses, baselines included."""
    looks = [style_of(str(name)) for name in known["defense"].unique()] if goal else []
    authors = [one for one in looks if one.measured_by.get(Goal(goal))]
    names = {name for one in authors for name in one.measured_by[Goal(goal)]}
    channels = {channel for one in authors for channel in one.measured_on}
    own = rows[rows["attack"].isin(names)]
    return own[own["channel"].isin(channels)] if channels else own


def _stated(row: Row) -> dict[str, Any]:
    copies = {"copies": int(row["copies"])} if str(row["copies"]).isdigit() else {}
    return {**json.loads(row["params"]), "split": row["cut"], **copies}


def _means(means: pd.DataFrame, name: str) -> dict[tuple[Any, ...], Ends]:
    return {
        setting_of(row): (row[name], row[f"{name}_low"], row[f"{name}_high"])
        for row in rows_of(means)
        if not pd.isna(row[name])
    }


def _successes(rows: pd.DataFrame) -> dict[tuple[Any, ...], Ends]:
    """Means of what one attack found, its headline of each cell."""
    return _means(average(rows.drop_duplicates("key"), SETTING), "success") if len(rows) else {}


def _perplexities(cells: pd.DataFrame, records: Sequence[Record]) -> dict[tuple[Any, ...], Ends]:
    told = {r.key: r.measures[PERPLEXITY] for r in records if PERPLEXITY in r.measures}
    found: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows_of(cells[cells["key"].isin(told)]):
        found.setdefault(setting_of(row), []).append(told[row["key"]])
    means = {}
    for where, own in found.items():
        values = [one.value for one in own]
        low, high = interval(values, own[0].low, own[0].high)
        means[where] = (sum(values) / len(values), low, high)
    return means


def _by_seed(rows: pd.DataFrame, name: str) -> dict[tuple[Any, ...], dict[int, float]]:
    found: dict[tuple[Any, ...], dict[int, float]] = {}
    for row in rows_of(rows):
        found.setdefault(setting_of(row), {})[int(row["seed"])] = float(row[name])
    return found
