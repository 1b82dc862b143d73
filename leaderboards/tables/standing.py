"""What may be said of a result: that it is certified, that it is proven to leak, or nothing."""

from __future__ import annotations

from typing import Literal

import pandas as pd

from leakboard.bench.scoring import NEEDED
from leakboard.leaderboards.tables.frame import Row

Standing = Literal["certified", "proven", "not shown"]
CERTIFIED: Standing = "certified"
"""The attack works where the protection is off, so that what it does not find here is hidden from it."""
PROVEN: Standing = "proven"
"""It is not shown to work there and yet finds something here: at least so much leaks."""
NOT_SHOWN: Standing = "not shown"
"""Neither: nothing is said of what this setting hides, by a number, a rank or a colour."""
IDLE = 0.8
"""Of the privacy that guessing leaves: a model without protection that keeps more says that no attack
works there yet."""
NOTHING_WORKS = "no attack here works yet"
LOWS = ["advantage_low", "certificate"]


def standing(row: Row) -> Standing:
    """Where a row of a frame or of means over seeds stands; a baseline, which reads nothing, as certified."""
    return _standing(row["channel"], row["certificate"], row["advantage_low"])


def _standing(channel: str, certificate: float, low: float) -> Standing:
    if channel == "" or certificate >= NEEDED:
        return CERTIFIED
    return PROVEN if low > 0 else NOT_SHOWN


def standings(rows: pd.DataFrame) -> pd.Series:
    """The same of every row."""
    told = (rows[name].tolist() for name in ("channel", "certificate", "advantage_low"))
    return pd.Series(list(map(_standing, *told)), rows.index, dtype="str")


def counting(rows: pd.DataFrame, group: pd.Series) -> pd.Series:
    """Whether each row's attack is certified or finds something, on the mean of its group.

    Args:
        group: the number of each row's, see `leakboard.leaderboards.tables.means.numbered`.
    """
    means = rows[LOWS].groupby(group, sort=False).transform("mean")
    return standings(means.assign(channel=rows["channel"])) != NOT_SHOWN


def shown(means: pd.DataFrame) -> pd.DataFrame:
    """With a column `standing`; EP and success of what is not shown are missing."""
    means = means.assign(standing=standings(means))
    hidden = means["standing"] == NOT_SHOWN
    names = [f"{name}{end}" for name in ("ep", "success") for end in ("", "_low", "_high")]
    return means.assign(**{name: means[name].mask(hidden) for name in names})


def above_floor(row: Row) -> list[str]:
    """What is to be said of a row whose floor lies above chance; nothing of others."""
    if not row["ep_level"] < row["ep_chance"]:
        return []
    return [
        f"{row['attack']} reads {row['floor']:.2f} from the untrained model already (guessing "
        f"{row['chance']:.2f}), which no defense can change: judged is what lies above that floor"
    ]


def levels(row: Row) -> str:
    """The EP that guessing leaves, and that which the untrained model leaves where it is less, in words."""
    chance, level = row["ep_chance"], row["ep_level"]
    if pd.isna(chance):
        return "–"
    return f"{chance:.3f}" + (f", floor {level:.3f}" if level < chance else "")


def told(number: str, standing: str) -> str:
    """A measured privacy in words: as it is, as an upper bound, or not at all."""
    return NOT_SHOWN if standing == NOT_SHOWN else f"≤ {number}" if standing == PROVEN else number
