"""Settings as points of utility and empirical privacy: named, and the envelope that none improves on."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import groupby
from math import inf, isnan
from operator import itemgetter

import numpy as np
import pandas as pd

from leakboard.bench.contracts import Goal
from leakboard.bench.scoring import UNTUNED
from leakboard.leaderboards.tables.deciding import PAPER, STRONGEST, Decided, deciding
from leakboard.leaderboards.tables.frame import rows_of
from leakboard.leaderboards.tables.means import SETTING, average
from leakboard.leaderboards.tables.parameters import (
    add_knobs,
    describe_setup,
    format_parameters,
    varying_names,
)
from leakboard.leaderboards.tables.standing import CERTIFIED, PROVEN, shown
from leakboard.leaderboards.tables.styles import style_of

ALIKE = ["task", "model", "shared"]
"""What settings share that stand on the same data."""
Untuned = Mapping[Hashable, float]
"""A utility by the values of ALIKE."""
THEIRS = ["ep", "ep_low", "ep_high", "attack", "attack_params", "standing"]
"""What is shown of the attack of a defense's authors."""


def points(frame: pd.DataFrame, goal: str, attack: str = STRONGEST) -> pd.DataFrame:
    """Utility and empirical privacy of every setting, as means over its seeds.

    Args:
        frame: as `leakboard.leaderboards.tables.frame.frame` builds it.
        goal: what the attacks guess, such as 'inversion'.
        attack: the attack that decides, as for `deciding`.

    Returns:
        One row per setting that has an ok result, and per attribute, with the columns of
        `SETTING`; the means `utility`, `success` and `ep` with `_low` and `_high` (95 %: Student's
        t over the seeds, with one seed the interval inside the cell), `chance`, `n_seeds`; the
        `attack` that decided, its `view` and `attribute`; its `standing`, and no `ep` where that is
        'not shown'; `untuned`, the utility of the model before any tuning, where that ran; `knob`, `knob_value` and `label`, which begins with '≤' where EP is no more than an
        upper bound.

    Raises:
        LeakboardError: no attack of that name has a row.
    """
    rows = deciding(frame[frame["goal"] == goal], attack)
    return _pointed(average(rows, [*SETTING, "attribute"]), goal, _untuned(frame))


def _pointed(means: pd.DataFrame, goal: str, untuned: Untuned) -> pd.DataFrame:
    """Points of the means of one goal."""
    found = add_knobs(shown(means)).assign(goal=goal)
    places = zip(*(found[name] for name in ALIKE), strict=True)
    before = pd.Series([untuned.get(place, np.nan) for place in places], found.index, dtype=float)
    bounds = found["standing"] == PROVEN
    labels = found["label"].mask(bounds, "≤ " + found["label"])
    return found.assign(untuned=before, label=labels)


def _untuned(frame: pd.DataFrame) -> Untuned:
    """The utility of the untuned model on each data."""
    own = frame[frame["defense"] == UNTUNED].drop_duplicates("key")
    return own.groupby(ALIKE)["utility"].mean().to_dict()


def per_setting(frame: pd.DataFrame, whole: Decided | None = None) -> pd.DataFrame:
    """One row per setting, goal and attribute: utility, and EP by the strongest attack and the paper's.

    Args:
        frame: as `leakboard.leaderboards.tables.frame.frame` builds it.
        whole: what decides in each setting of it, where it is at hand.

    Returns:
        The columns of `points` for the strongest attack, those of THEIRS with
        'paper_' before them, and `words`, the parameters that tell the setting from its peers.
    """
    same = [*SETTING, "attribute"]
    whole, untuned = whole or Decided(frame), _untuned(frame)
    parts = []
    for goal in Goal:
        strongest, theirs = (
            _pointed(means[means["goal"] == goal].reset_index(drop=True), goal, untuned)
            for means in (whole.means(STRONGEST), whole.means(PAPER))
        )
        theirs = theirs[[*same, *THEIRS]]
        # Without authors there is nothing but the strongest.
        authored = [bool(style_of(defense).measured_by) for defense in theirs["defense"]]
        theirs = theirs[pd.Series(authored, theirs.index, dtype=bool)]
        theirs = theirs.rename(columns={name: f"paper_{name}" for name in THEIRS})
        parts.append(strongest.merge(theirs, on=same, how="left"))
    rows = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    words = dict.fromkeys(rows.index, "")
    for defense, own in rows.groupby("defense", sort=False):
        names = varying_names(frame.loc[frame["defense"] == defense, "params"])
        for _, peers in own[SETTING].groupby(["task", "model", "cut"]):
            for index, row in zip(peers.index, rows_of(peers), strict=True):
                told = [format_parameters(row["params"], names), describe_setup(row, peers)]
                words[index] = ", ".join(filter(None, told))
    return rows.assign(words=pd.Series(words, dtype="str"))


def pareto(points: pd.DataFrame) -> pd.DataFrame:
    """The points of each task and attribute to which no other has both higher utility and EP.

    Ties stay. Points that lack one of the two numbers, or a certificate, are on no envelope. The
    order is kept.
    """
    names = ["task", "attribute", "standing", "utility", "ep"]
    panels: dict[tuple[str, str], list[tuple[float, float, int]]] = {}
    every = zip(*(points[name].tolist() for name in names), strict=True)
    for place, (task, attribute, standing, utility, ep) in enumerate(every):
        if standing == CERTIFIED and not isnan(utility) and not isnan(ep):
            panels.setdefault((task, attribute), []).append((utility, ep, place))
    return points.iloc[sorted(place for own in panels.values() for place in _undominated(own))]


def _undominated(panel: Sequence[tuple[float, float, int]]) -> list[int]:
    """Walks down in utility; a point must reach the best EP among those of higher utility.

    Args:
        panel: utility, EP and place of each point.
    """
    kept: list[int] = []
    best = -inf
    falling = sorted(panel, key=itemgetter(0), reverse=True)
    for _, own in groupby(falling, key=itemgetter(0)):
        level = list(own)
        kept += [place for _, ep, place in level if ep >= best]
        best = max(best, *(ep for _, ep, _ in level))
    return kept
