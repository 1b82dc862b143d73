"""Leaderboards: each answers one question about records, with ranks that show ties as ties."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from leaderboards.tables.comparisons import Comparison
from leaderboards.tables.deciding import STRONGEST
from leaderboards.tables.frame import Row
from leaderboards.tables.means import SETTING, average, by_setting, setting_of
from leaderboards.tables.parameters import choices
from leaderboards.tables.questions import QUESTIONS, Setting
from leaderboards.tables.ranks import Contender
from leaderboards.tables.standing import standing

PAPERS = "papers"
"""The board that stands apart: ours beside what a paper prints, see `leaderboards.tables.beside`."""


@dataclass(frozen=True)
class Board:
    """The answer to one question in one comparison, for one goal.

    Attributes:
        rows: one per entry, best first; every number stands with its interval as text.
        note: what a reader needs besides, such as how the ranks were made.
    """

    name: str
    question: str
    task: str
    model: str
    words: str
    goal: str
    rows: pd.DataFrame
    note: str


def boards(compared: Sequence[Comparison], attack: str = STRONGEST) -> list[Board]:
    """All boards that these comparisons can answer, one by one and goal by goal.

    Args:
        attack: the one that decides, as for `leaderboards.tables.deciding.deciding`.
    """
    return [
        board
        for comparison in compared
        for (goal, attribute), settings in _settings(comparison, attack)
        for board in _of(comparison, f"{goal} {attribute}".strip(), settings)
    ]


def _of(comparison: Comparison, goal: str, settings: Sequence[Setting]) -> Iterator[Board]:
    if len({str(one.row["defense"]) for one in settings}) < 2:
        return
    about = (comparison.task, comparison.model, comparison.words, goal)
    for name, question, make, note in QUESTIONS:
        rows = make(settings)
        if len(rows):
            yield Board(name, question, *about, pd.DataFrame(rows), note)


def _settings(
    comparison: Comparison, attack: str
) -> Iterator[tuple[tuple[str, str], list[Setting]]]:
    """By goal and attribute the settings under the attack that decides."""
    rows = comparison.decided(attack)
    rows = rows[rows["ep_level"] > 0]  # elsewhere there is nothing to find out
    rows = rows.assign(privacy=(rows["ep"] / rows["ep_level"]).clip(0, 1))
    lost = {setting_of(row): row for row in comparison.settings.to_dict("records")}
    told = [
        *SETTING,
        "seed",
        "utility",
        "utility_low",
        "utility_high",
        "privacy",
        "ep_low",
        "ep_high",
    ]
    for aim, same in rows.groupby(["goal", "attribute"], sort=False):
        found, seeds_of = [], by_setting(same[told])
        for mean in average(same, [*SETTING, "goal", "attribute"]).to_dict("records"):
            known, seeds = lost.get(setting_of(mean)), seeds_of[setting_of(mean)]
            if known is None:
                continue
            found.append(
                Setting(
                    row=mean | {"label": known["label"]},
                    lost=known,
                    utility=_contender(seeds, "utility", 1.0),
                    privacy=_contender(seeds, "privacy", float(mean["ep_level"]), "ep"),
                    choice=choices(str(mean["defense"]), [str(mean["params"])])[0],
                    standing=standing(mean),
                )
            )
        yield (str(aim[0]), str(aim[1])), found


def _contender(seeds: Sequence[Row], name: str, scale: float, ends: str = "") -> Contender:
    first, ends = seeds[0], ends or name
    values = {int(row["seed"]): float(row[name]) for row in seeds}
    return Contender(values, first[f"{ends}_low"] / scale, first[f"{ends}_high"] / scale)
