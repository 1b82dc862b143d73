"""The attack that decides how private a setting is."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from leakboard.bench.contracts import LeakboardError, did_you_mean
from leakboard.leaderboards.tables.frame import Row, rows_of
from leakboard.leaderboards.tables.means import SETTING, average, numbered
from leakboard.leaderboards.tables.standing import counting
from leakboard.leaderboards.tables.styles import style_of

PAPER, STRONGEST = "paper", "strongest"
"""What may decide, besides an attack by its name."""
NOTHING: dict[Hashable, Any] = {
    "attribute": "",
    "attack": "–",
    "attack_params": "",
    "ep": None,
    "ep_low": None,
    "ep_high": None,
    "flags": "",
    "standing": "",
}
"""In the place of an attack that decides, where there is none."""


def deciding(
    frame: pd.DataFrame, attack: str = STRONGEST, apart: Sequence[str] = ()
) -> pd.DataFrame:
    """The rows of the one attack that decides in each setting, for each goal and attribute.

    The strongest: The attack furthest above the level, on the mean over the seeds on which it ran, of those
    that read something and are certified or find something; where there is none, of all that read something.
    That an attack fails says nothing where it is not shown to work (see `leakboard.leaderboards.tables.standing`), and
    EPs of attacks whose levels differ cannot be compared. To take the strongest of each seed
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
        theirs = [_is_papers(row) for row in rows_of(told)]
        rows = rows[np.array(theirs, dtype=bool)]
    elif attack == STRONGEST:
        # What reads nothing is no attack: where only it applies, no privacy has been shown.
        rows = rows[rows["channel"] != ""]
    elif attack not in set(frame["attack"]):
        known = [PAPER, STRONGEST, *sorted(set(frame["attack"]) - {""})]
        raise LeakboardError(f"no result of an attack '{attack}'. {did_you_mean(attack, known)}")
    else:
        rows = rows[rows["attack"] == attack]
    setting = numbered(rows, [*SETTING, *apart, "goal", "attribute"])
    of = numbered(rows.assign(setting=setting), ["setting", *method[1:], "channel"])
    mean = rows["above"].groupby(of, sort=False).transform("mean")
    parts = {"setting": setting, "of": of, "counts": counting(rows, of), "mean": mean}
    every = pd.DataFrame({name: values.to_numpy() for name, values in parts.items()})
    ranked = every.sort_values(["counts", "mean"], ascending=False, kind="stable")
    first = ranked.groupby("setting", sort=False)["of"].transform("first").sort_index()
    return rows[(every["of"] == first).to_numpy()].sort_index()


class Decided:
    """What decides in each setting of a table, found once for all who ask for parts of it.

    Attributes:
        table: as `leakboard.leaderboards.tables.frame.frame` builds it.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        self.table = table
        self._rows: dict[str, pd.DataFrame] = {}
        self._means: dict[str, pd.DataFrame] = {}

    def rows(self, attack: str) -> pd.DataFrame:
        """As `deciding` gives them."""
        if attack not in self._rows:
            self._rows[attack] = deciding(self.table, attack)
        return self._rows[attack]

    def means(self, attack: str) -> pd.DataFrame:
        """Means over seeds of each setting, goal and attribute, in order of appearance."""
        if attack not in self._means:
            self._means[attack] = average(self.rows(attack), [*SETTING, "goal", "attribute"])
        return self._means[attack]


def _is_papers(row: Row) -> bool:
    known = style_of(row["defense"])
    if not known.measured_by:
        return bool(row["channel"] != "")
    on_theirs = not known.measured_on or row["channel"] in known.measured_on
    return on_theirs and row["attack"] in known.measured_by.get(row["goal"], ())
