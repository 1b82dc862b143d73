"""The results table: one row for each setting and goal. All boards, figures and findings select its rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Self

import pandas as pd

from leakboard.bench.contracts import Goal, Record, grouped
from leakboard.leaderboards.tables.curves import Summary, curves, smallest
from leakboard.leaderboards.tables.leakage import (
    ALL,
    Aim,
    Candidate,
    Reader,
    Strongest,
)
from leakboard.leaderboards.tables.result import Result, numbers_of
from leakboard.leaderboards.tables.settings import Group, Setting, groups_of, place_of, twin_of

Attacks = Callable[[Candidate], bool]
"""Selection of attacks, such as a `Reader`."""


class ResultsTable(tuple[Result, ...]):
    """All rows, in the order of the records: by group, setting and goal."""

    groups: tuple[Group, ...]
    _under: dict[str, ResultsTable]

    def __new__(cls, rows: Iterable[Result], groups: Iterable[Group] = ()) -> Self:
        table = super().__new__(cls, rows)
        table.groups, table._under = tuple(groups), {}
        return table

    def select(self, **given: object) -> ResultsTable:
        """Rows with given values of some columns, such as `task="sst2", goal="label"`."""

        def agrees(row: Result) -> bool:
            return all(
                getattr(row if hasattr(row, name) else row.setting, name) == value
                for name, value in given.items()
            )

        return ResultsTable(filter(agrees, self), self.groups)

    @property
    def settings(self) -> list[Setting]:
        """All settings, also those on which no attack reads anything."""
        return [setting for group in self.groups for setting in group.settings]

    @property
    def reproduced(self) -> ResultsTable:
        """The table without submitted settings that were not reproduced."""
        return self.where(lambda setting: setting.is_reproduced)

    def where(self, holds: Callable[[Setting], bool]) -> ResultsTable:
        """The table of the settings for which something holds; their numbers stay as they are."""
        if all(map(holds, self.settings)):
            return self
        groups = [
            replace(group, settings=[*filter(holds, group.settings)]) for group in self.groups
        ]
        rows = (row for row in self if holds(row.setting))
        return ResultsTable(rows, [group for group in groups if group.settings])

    def under(self, attacks: Attacks) -> ResultsTable:
        """The table restricted to some attacks, also on the twins; that of a `Reader` is computed once."""
        if attacks == ALL:
            return self
        if not isinstance(attacks, Reader):
            return _table(self.groups, attacks)
        name = repr(attacks)
        if name not in self._under:
            self._under[name] = _table(self.groups, attacks)
        return self._under[name]

    @cached_property
    def least_cost_of_halving(self) -> dict[tuple[Goal, str, str], Summary]:
        """The cheapest setting that leaks at most half, of a defense made for the goal, by goal, task and model."""
        made = (curve for curve in curves(self) if curve.is_made_for_goal)
        places = grouped(made, lambda curve: (curve.goal, curve.task, curve.model))
        least = {at: smallest(c.cost_of_halving() for c in own) for at, own in places.items()}
        return {at: summary for at, summary in least.items() if summary.setting}

    def frame(self) -> pd.DataFrame:
        """One row per setting and goal; `results/README.md` explains the columns."""
        return pd.DataFrame([row.row() for row in self])

    def __repr__(self) -> str:
        return f"<ResultsTable: {len(self)} settings × goals in {len(self.groups)} groups>"


def results_table(records: Iterable[Record]) -> ResultsTable:
    """Utility, cost and leakage of each setting and goal; goals without an attack that reads anything have no row."""
    return _table(groups_of(records), ALL)


def _table(groups: Sequence[Group], attacks: Attacks) -> ResultsTable:
    settings = ResultsTable((), groups).settings
    attacked = {id(setting): _by_aim(setting, attacks) for setting in settings}
    undefended = grouped((setting for setting in settings if setting.undefended), place_of)
    rows: list[Result] = []
    for group in groups:
        for setting in group.settings:
            cost, near = group.cost(setting), undefended.get(place_of(setting), [])
            for aim, mine in attacked[id(setting)].items():
                twin, keys = twin_of(setting, aim, near, attacked)
                rows.append(
                    Result(
                        setting=setting,
                        goal=aim[0],
                        attribute=aim[1],
                        cost=cost.points,
                        cost_by_seed=cost.by_seed,
                        cost_reason=cost.reason,
                        is_equally_tuned=cost.is_equally_tuned,
                        gain=group.gain,
                        twin_keys=keys,
                        **numbers_of(mine, twin),
                    )
                )
    certified = (row for row in rows if row.is_certified and not row.twin_advantage.is_missing)
    most_read = {
        seen: max(row.twin_advantage.value for row in same)
        for seen, same in grouped(certified, lambda row: (row.question, row.channel)).items()
    }
    rows = [replace(r, most_read=most_read.get((r.question, r.channel), 0.0)) for r in rows]
    priced = grouped((r for r in rows if r.has_comparable_cost), lambda r: r.question)
    most = defaultdict(int, {k: max(r.setting.trials for r in own) for k, own in priced.items()})
    rows = [
        replace(r, is_equally_tuned=r.is_equally_tuned and r.setting.trials >= most[r.question])
        for r in rows
    ]
    return ResultsTable(rows, groups)


def _by_aim(setting: Setting, attacks: Attacks) -> dict[Aim, Strongest]:
    chosen: dict[Aim, Strongest] = {}
    asks_worst = isinstance(attacks, Reader) and attacks.worst
    for aim, by_seed in (setting.worst if asks_worst else setting.readings).items():
        counted = {s: {c: own[c] for c in own if attacks(c)} for s, own in by_seed.items()}
        if read := {seed: readings for seed, readings in counted.items() if readings}:
            chosen[aim] = Strongest(read)
    order = list(Goal)
    return {aim: chosen[aim] for aim in sorted(chosen, key=lambda a: (order.index(a[0]), a[1]))}
