"""One setting of a defense against one goal, over its seeds: what boards compare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from leakboard.leaderboards.tables.comparisons import Comparison
from leakboard.leaderboards.tables.deciding import STRONGEST
from leakboard.leaderboards.tables.frame import Row, rows_of
from leakboard.leaderboards.tables.means import SETTING, means_of, setting_of
from leakboard.leaderboards.tables.parameters import choices_of
from leakboard.leaderboards.tables.ranks import Contender
from leakboard.leaderboards.tables.standing import Standing, standing

AIM = ["goal", "attribute"]


@dataclass(frozen=True)
class Setting:
    """One setting of a defense against one goal, over its seeds.

    Attributes:
        standing: only what is certified is ranked.
    """

    row: Row
    lost: Row
    utility: Contender
    privacy: Contender
    choice: str
    standing: Standing


def measured_settings(
    comparison: Comparison, attack: str = STRONGEST
) -> Iterator[tuple[tuple[str, str], list[Setting]]]:
    """By goal and attribute the settings under the attack that decides, see `Comparison.decided`."""
    rows = comparison.decided(attack)
    rows = rows[rows["ep_level"] > 0]  # elsewhere there is nothing to find out
    rows = rows.assign(privacy=(rows["ep"] / rows["ep_level"]).clip(0, 1))
    told = [*SETTING, *AIM, "seed", "utility", "utility_low", "utility_high"]
    seeds_of: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows_of(rows[[*told, "privacy", "ep_low", "ep_high"]]):
        seeds_of.setdefault((*_aim(row), *setting_of(row)), []).append(row)
    means: dict[tuple[str, str], list[Row]] = {}
    for row in means_of(rows, [*SETTING, *AIM]):
        means.setdefault(_aim(row), []).append(row)
    for aim, same in means.items():
        found = []
        for mean in same:
            where = setting_of(mean)
            known, seeds = comparison.lost.get(where), seeds_of[(*aim, *where)]
            if known is None:
                continue
            found.append(
                Setting(
                    row={**mean, "label": known["label"]},
                    lost=known,
                    utility=_contender(seeds, "utility", 1.0),
                    privacy=_contender(seeds, "privacy", float(mean["ep_level"]), "ep"),
                    choice=choices_of(str(mean["defense"]), [str(mean["params"])])[0],
                    standing=standing(mean),
                )
            )
        yield aim, found


def _aim(row: Row) -> tuple[str, str]:
    return str(row["goal"]), str(row["attribute"])


def _contender(seeds: Sequence[Row], name: str, scale: float, ends: str = "") -> Contender:
    first, ends = seeds[0], ends or name
    values = {int(row["seed"]): float(row[name]) for row in seeds}
    return Contender(values, first[f"{ends}_low"] / scale, first[f"{ends}_high"] / scale)
