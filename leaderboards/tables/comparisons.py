"""Which settings may be compared: on the same data and model, each trained as was chosen for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from leakboard.bench.contracts import Cell, Record, digest
from leakboard.bench.scoring import gain
from leakboard.bench.tasks import HELD_OUT
from leakboard.leaderboards.tables.deciding import PAPER, STRONGEST, Decided, deciding
from leakboard.leaderboards.tables.frame import Row, frame, rows_of
from leakboard.leaderboards.tables.means import SETTING, average, interval, setting_of
from leakboard.leaderboards.tables.parameters import add_knobs, distinguish_labels
from leakboard.leaderboards.tables.settings import describe_groups, group_records

EVERYWHERE = (STRONGEST, PAPER)
"""What may decide in any setting."""
CELL = [
    *[*SETTING, "key", "undefended", "utility", "utility_metric"],
    *["epoch_bytes_up", "epoch_bytes_down"],
]
"""What is asked of a cell, whatever was found on it."""
APART_FROM_TRAINING = {"evaluate", "plant", "record", "seed"}
"""What of a cell does not say how it is trained."""
HeldOut = dict[str, dict[int, float]]
"""Of what was judged on held-out training examples the utility, by what was trained and by the seed."""


@dataclass(frozen=True)
class Comparison:
    """Records that share task, model and data, and their table.

    Attributes:
        rows: as `leakboard.leaderboards.tables.frame.frame` builds it.
        whole: what decides in each setting of a table that holds these rows, and may hold others.
        settings: a row for each, with the columns of `SETTING`, `label` and `undefended`; the `points`
            of utility that it loses against no protection, with `low`, `high` and `seeds`;
            `sent`, the megabytes that cross the trust boundary per epoch of fine-tuning, both ways; and
            `held_out`, the utility on held-out training examples of what was trained like it, by the
            seed; empty where no such records are at hand.
    """

    task: str
    model: str
    words: str
    records: Sequence[Record]
    rows: pd.DataFrame
    whole: Decided
    settings: pd.DataFrame

    def deciding(self, attack: str = STRONGEST) -> pd.DataFrame:
        """Means over seeds of the attack that decides, for each setting, goal and attribute; see
        `leakboard.leaderboards.tables.deciding.deciding`."""
        if attack not in self._known:
            self._known[attack] = (
                self._own(self.whole.means(attack)).reset_index(drop=True)
                if attack in EVERYWHERE
                else average(self.decided(attack), [*SETTING, "goal", "attribute"])
            )
        return self._known[attack]

    def decided(self, attack: str = STRONGEST) -> pd.DataFrame:
        """The rows of that attack, of every seed."""
        if attack not in self._decided:
            everywhere = attack in EVERYWHERE
            self._decided[attack] = (
                self._own(self.whole.rows(attack)) if everywhere else deciding(self.rows, attack)
            )
        return self._decided[attack]

    def _own(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Those of this comparison, which share the digits of what is compared."""
        own: pd.DataFrame = rows[rows["shared"] == self.rows["shared"].iloc[0]]
        return own

    def means(self, goal: str, attack: str = STRONGEST) -> Sequence[Row]:
        """The rows of `deciding` about one goal."""
        if attack not in self._by_goal:
            own = self._by_goal.setdefault(attack, {})
            for row in rows_of(self.deciding(attack)):
                own.setdefault(row["goal"], []).append(row)
        return self._by_goal[attack].get(goal, [])

    @cached_property
    def _by_goal(self) -> dict[str, dict[str, list[Row]]]:
        return {}

    @cached_property
    def lost(self) -> Mapping[tuple[Any, ...], Row]:
        """The rows of `settings`, by `setting_of`."""
        return {setting_of(row): row for row in rows_of(self.settings)}

    @cached_property
    def _known(self) -> dict[str, pd.DataFrame]:
        return {}

    @cached_property
    def made(self) -> dict[tuple[str, float], Any]:
        """What others made of it, each once: by what it is, and its number."""
        return {}

    @cached_property
    def _decided(self) -> dict[str, pd.DataFrame]:
        return {}

    @cached_property
    def keys(self) -> Mapping[tuple[Any, ...], tuple[str, ...]]:
        """The records of each setting."""
        found: dict[tuple[Any, ...], dict[str, None]] = {}
        for row in rows_of(self.rows[[*SETTING, "key"]].drop_duplicates()):
            found.setdefault(setting_of(row), {})[row["key"]] = None
        return {where: tuple(keys) for where, keys in found.items()}


def comparisons(records: Sequence[Record], whole: Decided | None = None) -> list[Comparison]:
    """The records in comparable groups, those with most defenses first.

    A group without an undefended cell is left out: nothing there says what utility was lost.

    Args:
        whole: what decides in each setting of them all, where it is at hand.
    """
    # Certificates count beyond a group: one table of all, divided afterwards.
    whole = whole or Decided(frame(records))
    groups = group_records(records)
    words = describe_groups(groups)
    known = {record.key: record for record in records}
    held_out = _held_out(records)
    found = [
        _comparison(own, words[digits], whole, known, held_out) for digits, own in groups.items()
    ]
    held = [one for one in found if len(one.settings)]
    return sorted(held, key=lambda one: -one.rows["defense"].nunique())


def _comparison(
    records: Sequence[Record],
    words: str,
    whole: Decided,
    known: Mapping[str, Record],
    held_out: HeldOut,
) -> Comparison:
    cell, table = records[0].cell, whole.table
    rows = table[table["key"].isin({record.key for record in records})]
    told = _settings(rows, known, held_out)
    return Comparison(cell.task, cell.model, words, records, rows, whole, told)


def _settings(rows: pd.DataFrame, by_key: Mapping[str, Record], held_out: HeldOut) -> pd.DataFrame:
    cells = rows[CELL].drop_duplicates("key").dropna(subset=["utility"])
    open_ = cells[cells["undefended"]]
    if open_.empty:
        return pd.DataFrame()
    # `none` where it ran: other methods with their protection off may still cost something.
    plain = open_[open_["defense"] == "none"]
    plain = _at_its_best(open_ if plain.empty else plain)
    reference = _by_seed(plain, by_key)
    found = []
    for _, same in cells.groupby(SETTING, sort=False, dropna=False):
        points, low, high, seeds = paired(reference, _by_seed(same, by_key))
        first = same.iloc[0]
        row = {name: first[name] for name in [*SETTING, "utility_metric"]}
        row |= {"points": 100 * points, "low": 100 * low, "high": 100 * high, "seeds": seeds}
        row["sent"] = (same["epoch_bytes_up"] + same["epoch_bytes_down"]).mean() / 1e6
        like = {_trained(by_key[key].cell) for key in same["key"]}
        row["held_out"] = {seed: u for one in like for seed, u in held_out.get(one, {}).items()}
        found.append(row | {"undefended": bool(first["undefended"])})
    return distinguish_labels(add_knobs(pd.DataFrame(found)))


def _held_out(records: Iterable[Record]) -> HeldOut:
    found: HeldOut = {}
    for record in records:
        if record.cell.evaluate == HELD_OUT and record.utility:
            found.setdefault(_trained(record.cell), {})[record.cell.seed] = record.utility.value
    return found


def _trained(cell: Cell) -> str:
    """Tells what is trained apart, whatever is planted, recorded and reported, with any seed."""
    return digest(cell.model_dump(mode="json", exclude=APART_FROM_TRAINING))


def _at_its_best(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells of the setting of highest utility, among those that ran with most seeds."""
    utility = cells.groupby(SETTING, dropna=False)["utility"]
    ranked = cells.assign(n=utility.transform("size"), mean=utility.transform("mean"))
    first = ranked.sort_values(["n", "mean"], ascending=False, kind="stable").iloc[0]
    return cells[(ranked[["n", "mean"]] == first[["n", "mean"]]).all(axis=1)]


def points_lost(lost: Row) -> tuple[str, str]:
    """The points of utility lost and their interval, in words; what rounds to 0 has no sign."""
    return f"{lost['points']:z.1f}", f"[{lost['low']:z.1f}, {lost['high']:z.1f}]"


def _by_seed(cells: pd.DataFrame, by_key: Mapping[str, Record]) -> dict[int, Record]:
    return {by_key[key].cell.seed: by_key[key] for key in cells["key"]}


def paired(
    reference: Mapping[int, Record], mine: Mapping[int, Record]
) -> tuple[float, float, float, int]:
    """How much lower the utility of some records is than that of others, seed by seed.

    Returns:
        The mean difference, its 95 % interval and the number of seeds that both have. With one
        common seed the interval comes from the examples, which both predicted.
    """
    common = sorted(reference.keys() & mine.keys())
    pairs = [(reference[seed], mine[seed]) for seed in common]
    gaps = np.array(
        [a.utility.value - b.utility.value for a, b in pairs if a.utility and b.utility]
    )
    if not len(gaps):
        return np.nan, np.nan, np.nan, 0
    low, high = interval(gaps, *(gain(*pairs[0])[1:] if len(gaps) == 1 else (0.0, 0.0)))
    return float(gaps.mean()), low, high, len(gaps)
