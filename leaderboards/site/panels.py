"""The figures of utility against privacy: what is drawn together, and under which name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from leakboard.bench.contracts import Goal, Record
from leakboard.leaderboards.site.cells import aim
from leakboard.leaderboards.site.links import slug
from leakboard.leaderboards.tables import alike, rows_of, setting_of, setups


@dataclass(frozen=True)
class Panel:
    """A figure of utility against privacy.

    Attributes:
        name: of its files.
        about: model, data and training, in words.
        rows: its points, as `leakboard.leaderboards.tables.points.points` builds them.
    """

    name: str
    task: str
    about: str
    goal: str
    attribute: str
    rows: pd.DataFrame

    @property
    def what(self) -> str:
        """What the attacks guess, in words."""
        return aim(self.goal, self.attribute)


def panels(
    records: Sequence[Record], settings: pd.DataFrame, keys: Mapping[tuple[Any, ...], str]
) -> list[Panel]:
    """A panel for what may be compared of some records, and for each goal and attribute.

    Args:
        settings: theirs, as `leakboard.leaderboards.tables.points.per_setting` builds them.
        keys: for each setting the key of one of the records.
    """
    groups = alike(records)
    words = setups(groups)
    group_of = {record.key: digits for digits, own in groups.items() for record in own}
    whole = settings.dropna(subset=["utility", "ep"])
    shared = [group_of[keys[setting_of(row)]] for row in rows_of(whole)]
    found = []
    by = [whole["task"], pd.Series(shared, whole.index), whole["goal"], whole["attribute"]]
    for names, rows in whole.groupby(by, sort=False):
        task, digits, goal, attribute = map(str, names)
        cell = groups[digits][0].cell
        # No slug holds a dot, so no two of these names are the same.
        name = ".".join(slug(part) for part in (task, digits, goal, attribute) if part)
        found.append(Panel(name, task, f"{cell.model}, {words[digits]}", goal, attribute, rows))
    return found


def by_task(every: Sequence[Panel]) -> dict[str, dict[str, list[Panel]]]:
    """The panels by task and by what they share, the groups of most defenses first."""
    found: dict[str, dict[str, list[Panel]]] = {}
    for panel in every:
        found.setdefault(panel.task, {}).setdefault(panel.about, []).append(panel)
    order = [str(goal) for goal in Goal]
    for groups in found.values():
        for own in groups.values():
            own.sort(key=lambda panel: order.index(panel.goal))
    return {
        task: dict(sorted(groups.items(), key=lambda group: -_defenses(group[1])))
        for task, groups in found.items()
    }


def _defenses(own: Sequence[Panel]) -> int:
    return len({name for panel in own for name in panel.rows["defense"]})
